#include "reports/machine_code.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "absl/status/status.h"
#include "reports/text.h"

namespace warpledger::report {
namespace {

absl::Status Malformed(std::string_view path, std::string_view problem) {
  return absl::InvalidArgumentError(Cat("codegen.json: ", path, " ", problem,
                                        "; the record's folder must hold what the run wrote"));
}

// {"LDG", its instructions of all widths and kinds}
Opcodes ByMnemonic(const Opcodes& opcodes) {
  Opcodes out;
  for (const auto& [opcode, count] : opcodes) out[opcode.substr(0, opcode.find('.'))] += count;
  return out;
}

}  // namespace

const Opcodes* MachineCode::Find(std::string_view code_sha256) const {
  const auto found = kernels_.find(code_sha256);
  return found == kernels_.end() || found->second.empty() ? nullptr : &found->second;
}

absl::StatusOr<MachineCode> ParseMachineCode(const nlohmann::ordered_json& json) {
  MachineCode out;
  if (json.is_null()) return out;
  if (!json.is_object() || !json.contains("instances") || !json["instances"].is_array()) {
    return Malformed("instances", "must be an array");
  }
  for (size_t i = 0; i < json["instances"].size(); ++i) {
    const nlohmann::ordered_json& instance = json["instances"][i];
    const std::string path = Cat("instances[", i, "]");
    if (!instance.is_object() || !instance.contains("code_sha256") ||
        !instance["code_sha256"].is_string()) {
      return Malformed(path + ".code_sha256", "must be a string");
    }
    if (!instance.contains("opcodes") || !instance["opcodes"].is_object()) {
      return Malformed(path + ".opcodes", "must be an object");
    }
    Opcodes opcodes;
    for (const auto& [opcode, count] : instance["opcodes"].items()) {
      if (!count.is_number_integer()) {
        return Malformed(Cat(path, ".opcodes.", opcode), "must be an integer");
      }
      opcodes[opcode] = count.get<int64_t>();
    }
    out.kernels_.emplace(instance["code_sha256"].get<std::string>(), std::move(opcodes));
  }
  return out;
}

int64_t CountAll(const Opcodes& opcodes) {
  int64_t count = 0;
  for (const auto& [opcode, n] : opcodes) count += n;
  return count;
}

int64_t CountMatching(const Opcodes& opcodes, std::string_view regex) {
  const std::regex pattern{std::string(regex)};
  int64_t count = 0;
  for (const auto& [opcode, n] : opcodes) {
    if (std::regex_search(opcode, pattern)) count += n;
  }
  return count;
}

std::vector<OpcodeChange> LargestChanges(const Opcodes& before, const Opcodes& after, size_t most) {
  std::map<std::string, OpcodeChange> changes;
  for (const auto& [opcode, count] : ByMnemonic(before)) changes[opcode].before = count;
  for (const auto& [opcode, count] : ByMnemonic(after)) changes[opcode].after = count;
  std::vector<OpcodeChange> out;
  for (auto& [opcode, change] : changes) {
    change.opcode = opcode;
    if (change.before != change.after) out.push_back(change);
  }
  // Equal ones stay in the alphabet's order.
  std::stable_sort(out.begin(), out.end(), [](const OpcodeChange& a, const OpcodeChange& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  out.resize(std::min(out.size(), most));
  return out;
}

}  // namespace warpledger::report
