// The instructions of a record's kernels, from its codegen.json.
//
// Contract: ParseMachineCode() takes a codegen.json (schema: reports/RECORD.md), or null for a
// record without one, which then knows no kernel. Kernels go by the hash of their machine code, as
// a summary's cells name them. Counts are static: instructions in the code, not executed ones.
//
// Errors: InvalidArgument with the JSON path and what was found there.
//
//   absl::StatusOr<MachineCode> code = ParseMachineCode(json);
//   if (const Opcodes* opcodes = code->Find(cell.code_sha256)) … CountMatching(*opcodes, "^HMMA")

#ifndef WARPLEDGER_REPORTS_MACHINE_CODE_H_
#define WARPLEDGER_REPORTS_MACHINE_CODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace warpledger::report {

using Opcodes = std::map<std::string, int64_t>;  // {"HMMA.16816.F32", how often}

class MachineCode {
 public:
  // Null where the record has no disassembly of it.
  const Opcodes* Find(std::string_view code_sha256) const;

 private:
  friend absl::StatusOr<MachineCode> ParseMachineCode(const nlohmann::ordered_json& json);
  std::map<std::string, Opcodes, std::less<>> kernels_;
};

absl::StatusOr<MachineCode> ParseMachineCode(const nlohmann::ordered_json& json);

int64_t CountAll(const Opcodes& opcodes);
// Of the opcodes that hold a match of the regex (ECMAScript), as the codegen tests count them.
int64_t CountMatching(const Opcodes& opcodes, std::string_view regex);

struct OpcodeChange {
  std::string opcode;  // up to its first dot: "LDG" of "LDG.E.128"
  int64_t before = 0;
  int64_t after = 0;
};
// The opcodes whose count changed, the largest change first, at most `most` of them.
std::vector<OpcodeChange> LargestChanges(const Opcodes& before, const Opcodes& after, size_t most);

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_MACHINE_CODE_H_
