// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/code_change.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

// "40 → 96", or one figure where nothing changed.
template <typename Format>
std::string Change(const CodeChange::Counts& change, Format format) {
  const std::string before = format(change.before);
  const std::string after = format(change.after);
  return before == after ? before : Cat(before, " → ", after);
}

bool IsKnown(const CodeChange::Counts& change) { return change.before || change.after; }

}  // namespace

std::string ResourceChange(const Verdict& verdict) {
  if (!verdict.change) return std::string(kNone);
  const CodeChange& change = *verdict.change;
  std::vector<std::string> parts;
  if (IsKnown(change.registers)) {
    parts.push_back(Cat(Change(change.registers, &FormatInteger), " registers"));
  }
  if (IsKnown(change.smem_bytes)) {
    parts.push_back(Cat(Change(change.smem_bytes, &FormatKib), " KiB shared"));
  }
  if (IsKnown(change.warps_per_sm)) {
    parts.push_back(Cat(Change(change.warps_per_sm, &FormatInteger), " warps / SM"));
  }
  if (change.spill_bytes.before.value_or(0) > 0 || change.spill_bytes.after.value_or(0) > 0) {
    parts.push_back(Cat(Change(change.spill_bytes, &FormatInteger), " B of spills"));
  }
  return parts.empty() ? std::string(kNone) : absl::StrJoin(parts, ", ");
}

std::string InstructionChange(const Summary& summary, const Verdict& verdict, size_t most) {
  if (!verdict.change || !verdict.change->instructions) return std::string(kNone);
  const CodeChange& change = *verdict.change;
  std::string out = Change(*change.instructions, &FormatInteger);
  std::vector<std::string> opcodes;
  const ablations::Claim* claim = summary.FindClaim(verdict.toggle);
  const std::string_view evidence = claim != nullptr ? claim->evidence.opcodes : "";
  if (!evidence.empty() && change.evidence) {
    opcodes.push_back(Cat(Code(evidence), " ", Change(*change.evidence, &FormatInteger)));
    ++most;
  }
  const Opcodes changed = change.opcodes.value_or(Opcodes());
  for (const Opcodes::Opcode& opcode : changed.list) {
    if (opcodes.size() == most) break;
    if (opcode.name == evidence) continue;
    opcodes.push_back(Cat(Code(opcode.name), " ", Change(opcode.count, &FormatInteger)));
  }
  if (!opcodes.empty()) Append(&out, ": ", absl::StrJoin(opcodes, ", "));
  return out;
}

}  // namespace warpledger::report
