// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ablations/judge/summarize_parts.h"
#include "ablations/stats/opcodes.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarpSize = 32;
// Beyond these, what a change of the kernel brings is address arithmetic.
constexpr size_t kMostOpcodes = 10;

const analysis::Opcodes* Disassembly(const InstanceCodegen* code) {
  return code == nullptr || code->opcodes.empty() ? nullptr : &code->opcodes;
}

Json WarpsPerSm(const Json& resources) {
  if (resources["ctas_per_sm"].is_null() || resources["threads"].is_null()) return nullptr;
  return resources["ctas_per_sm"].get<int64_t>() * resources["threads"].get<int64_t>() / kWarpSize;
}

}  // namespace

// What the driver says of the loaded kernel goes before what ptxas said.
Json ResourcesOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape) {
  const InstanceLaunch* launch = index.Launch(arm, shape);
  const InstanceResources* ptxas = index.Resources(arm, shape);
  Json out;
  for (const char* field :
       {"registers", "smem_bytes", "spill_bytes", "stack_bytes", "threads", "ctas_per_sm"}) {
    out[field] = nullptr;
  }
  if (ptxas != nullptr) {
    out["registers"] = ptxas->registers;
    out["smem_bytes"] = ptxas->static_smem_bytes;
    out["spill_bytes"] = ptxas->spill_store_bytes + ptxas->spill_load_bytes;
    out["stack_bytes"] = ptxas->stack_bytes;
  }
  if (launch != nullptr) {
    out["registers"] = launch->registers;
    out["smem_bytes"] = launch->static_smem_bytes + launch->dynamic_smem_bytes;
    out["threads"] = launch->threads;
    out["ctas_per_sm"] = launch->ctas_per_sm;
  }
  return out;
}

Json CodeChangeOf(const RecordIndex& index, const Arm& base, const Arm& candidate,
                  const ShapeInfo& shape, const Claim& claim) {
  const Json before = ResourcesOf(index, base, shape);
  const Json after = ResourcesOf(index, candidate, shape);
  const auto both = [](const Json& of_base, const Json& of_candidate) {
    return Json::array({of_base, of_candidate});
  };
  Json change;
  for (const char* field : {"registers", "smem_bytes", "spill_bytes"}) {
    change[field] = both(before[field], after[field]);
  }
  change["warps_per_sm"] = both(WarpsPerSm(before), WarpsPerSm(after));
  const analysis::Opcodes* off = Disassembly(index.Code(base, shape));
  const analysis::Opcodes* on = Disassembly(index.Code(candidate, shape));
  if (off == nullptr || on == nullptr) {
    for (const char* field : {"instructions", "evidence", "opcodes"}) change[field] = nullptr;
    return change;
  }
  change["instructions"] = both(analysis::CountAll(*off), analysis::CountAll(*on));
  const std::string sass(claim.evidence.opcodes);
  change["evidence"] =
      sass.empty() ? Json(nullptr)
                   : both(analysis::CountMatching(*off, sass), analysis::CountMatching(*on, sass));
  change["opcodes"] = Json::object();
  for (const analysis::OpcodeChange& opcode : analysis::LargestChanges(*off, *on, kMostOpcodes)) {
    change["opcodes"][opcode.opcode] = both(opcode.before, opcode.after);
  }
  return change;
}

}  // namespace warpledger::ablations
