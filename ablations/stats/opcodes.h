// SPDX-License-Identifier: Apache-2.0
// Counts of a kernel's instructions, and how two kernels differ in them.
//
// Contract: counts are static: how often an opcode stands in the machine code, not
// how often it is executed. Pure functions; no errors.
//
//   CountMatching(opcodes, "^HMMA")              // 32
//   LargestChanges(before, after, 10)[0].opcode  // "HMMA"

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace warpledger::analysis {

using Opcodes = std::map<std::string, int64_t>;  // {"HMMA.16816.F32", how often}

int64_t CountAll(const Opcodes& opcodes);
// Of the opcodes that hold a match of the regex (ECMAScript).
int64_t CountMatching(const Opcodes& opcodes, const std::string& regex);

struct OpcodeChange {
  std::string opcode;  // up to its first dot: "LDG" of "LDG.E.128"
  int64_t before = 0;
  int64_t after = 0;
};
// The largest change first, equal ones by the alphabet; at most `most` of them.
std::vector<OpcodeChange> LargestChanges(const Opcodes& before, const Opcodes& after, size_t most);

}  // namespace warpledger::analysis
