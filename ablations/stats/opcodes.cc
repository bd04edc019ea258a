// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/opcodes.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace warpledger::analysis {

int64_t CountAll(const Opcodes& opcodes) {
  int64_t count = 0;
  for (const auto& [opcode, times] : opcodes) count += times;
  return count;
}

int64_t CountMatching(const Opcodes& opcodes, const std::string& regex) {
  const std::regex pattern(regex);
  int64_t count = 0;
  for (const auto& [opcode, times] : opcodes) {
    if (std::regex_search(opcode, pattern)) count += times;
  }
  return count;
}

std::vector<OpcodeChange> LargestChanges(const Opcodes& before, const Opcodes& after, size_t most) {
  const auto mnemonic = [](const std::string& opcode) {
    return opcode.substr(0, opcode.find('.'));
  };
  std::map<std::string, OpcodeChange> changes;
  for (const auto& [opcode, times] : before) changes[mnemonic(opcode)].before += times;
  for (const auto& [opcode, times] : after) changes[mnemonic(opcode)].after += times;
  std::vector<OpcodeChange> out;
  for (auto& [opcode, change] : changes) {
    change.opcode = opcode;
    if (change.before != change.after) out.push_back(change);
  }
  std::stable_sort(out.begin(), out.end(), [](const OpcodeChange& a, const OpcodeChange& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace warpledger::analysis
