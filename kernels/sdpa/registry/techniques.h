// SPDX-License-Identifier: Apache-2.0
// The techniques that several families share: what the mechanism is, and when to use it.
//
// A toggle names its technique in its row (toggles.def). Texts have no figures: pages take those
// from the records.
//
//   for (const TechniqueRow& technique : kTechniques) …

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_TECHNIQUES_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_TECHNIQUES_H_

#include <string_view>

#include "kernels/sdpa/registry/registry.h"

namespace warpledger::sdpa {

struct TechniqueRow {
  Technique id;
  std::string_view name;
  std::string_view mechanism;  // one sentence
  std::string_view use_when;   // what the records of all families say together
};

// In the order in which a reader would try them.
inline constexpr TechniqueRow kTechniques[] = {
    {Technique::kTensorCores, "Tensor cores",
     "Q K^T and P V run on WMMA, mma.sync or wgmma instead of FMAs.", "always"},
    {Technique::kCopiesAhead, "Copies ahead of use",
     "cp.async or TMA fetches the next K/V tile while the current one is computed.",
     "always two stages; more where a stage costs no CTA per SM"},
    {Technique::kScoresInRegisters, "S and P in registers",
     "The softmax works on accumulator fragments, and P becomes an operand in place.",
     "always, all the way: half of it loses at short lengths"},
    {Technique::kSmemLayout, "Shared memory without bank conflicts",
     "Padding or an XOR swizzle puts the rows of a fragment into different banks.",
     "always one of the two; which one matters little"},
    {Technique::kSoftmaxOverlap, "Softmax beside MMAs",
     "The exponentials of one tile run while the tensor cores multiply another.",
     "a CTA walks over many tiles, and heads are wide"},
    {Technique::kWarpSpecialisation, "Warp specialisation",
     "Warps that only copy take addresses and waiting off the warps that compute.",
     "the compute warps lack issue slots, as with WMMA; not with mma.sync"},
    {Technique::kPingPong, "Ping-pong scheduling",
     "Warpgroups alternate on the tensor cores by named barriers.",
     "measure it first: it loses about as often as it gains"},
    {Technique::kTileSchedule, "Persistent CTAs, tile order",
     "CTAs stay and take tiles from a list or a counter, the longest first.",
     "causal masks and long sequences; not where each CTA has one tile"},
    {Technique::kLazyRescale, "Lazy rescaling",
     "O is rescaled only where a row's maximum rises far.", "head_dim 128 and wider"},
    {Technique::kExponentials, "Cheaper exponentials",
     "log2(e) is folded into the scale, or a polynomial takes a share of the MUFU's work.",
     "fold log2(e) always; a polynomial seldom pays, for issue slots are short"},
    {Technique::kSplitKv, "Split-KV",
     "Warpgroups, a cluster or CTAs divide the keys of a row and combine partial results.",
     "query rows are too few to fill the SMs"},
    {Technique::kPackedHeads, "Packed query heads", "Query heads that share K and V fill one tile.",
     "decoding with grouped heads, in small batches with split-KV"},
    {Technique::kDependentLaunch, "Dependent launch",
     "A kernel's prologue runs beside the end of the kernel before it.",
     "calls of a few microseconds follow each other"},
};

constexpr const TechniqueRow* FindTechnique(Technique id) {
  for (const TechniqueRow& row : kTechniques) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_TECHNIQUES_H_
