// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ablations/judge/summarize_parts.h"
#include "ablations/stats/opcodes.h"

namespace warpledger::ablations {
namespace {

constexpr int kWarpSize = 32;
// Beyond these, what a change of the kernel brings is address arithmetic.
constexpr size_t kMostOpcodes = 10;

const analysis::Opcodes* Disassembly(const InstanceCodegen* code) {
  return code == nullptr || code->opcodes.empty() ? nullptr : &code->opcodes;
}

std::optional<int64_t> WarpsPerSm(const summary::Resources& resources) {
  if (!resources.ctas_per_sm || !resources.threads) return std::nullopt;
  return *resources.ctas_per_sm * *resources.threads / kWarpSize;
}

}  // namespace

// What the driver says of the loaded kernel goes before what ptxas said.
summary::Resources ResourcesOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape) {
  summary::Resources out;
  if (const InstanceResources* ptxas = index.Resources(arm, shape); ptxas != nullptr) {
    out.registers = ptxas->registers;
    out.smem_bytes = ptxas->static_smem_bytes;
    out.spill_bytes = ptxas->spill_store_bytes + ptxas->spill_load_bytes;
    out.stack_bytes = ptxas->stack_bytes;
  }
  if (const InstanceLaunch* launch = index.Launch(arm, shape); launch != nullptr) {
    out.registers = launch->registers;
    out.smem_bytes = launch->static_smem_bytes + launch->dynamic_smem_bytes;
    out.threads = launch->threads;
    out.ctas_per_sm = launch->ctas_per_sm;
  }
  return out;
}

summary::CodeChange CodeChangeOf(const RecordIndex& index, const Arm& base, const Arm& candidate,
                                 const ShapeInfo& shape, const Claim& claim) {
  using Counts = summary::CodeChange::Counts;
  const summary::Resources before = ResourcesOf(index, base, shape);
  const summary::Resources after = ResourcesOf(index, candidate, shape);
  summary::CodeChange change;
  change.registers = {before.registers, after.registers};
  change.smem_bytes = {before.smem_bytes, after.smem_bytes};
  change.spill_bytes = {before.spill_bytes, after.spill_bytes};
  change.warps_per_sm = {WarpsPerSm(before), WarpsPerSm(after)};
  const analysis::Opcodes* off = Disassembly(index.Code(base, shape));
  const analysis::Opcodes* on = Disassembly(index.Code(candidate, shape));
  if (off == nullptr || on == nullptr) return change;
  change.instructions = Counts{analysis::CountAll(*off), analysis::CountAll(*on)};
  if (const std::string sass(claim.evidence.opcodes); !sass.empty()) {
    change.evidence =
        Counts{analysis::CountMatching(*off, sass), analysis::CountMatching(*on, sass)};
  }
  change.opcodes.emplace();
  for (const analysis::OpcodeChange& opcode : analysis::LargestChanges(*off, *on, kMostOpcodes)) {
    change.opcodes->list.push_back({opcode.opcode, {opcode.before, opcode.after}});
  }
  return change;
}

}  // namespace warpledger::ablations
