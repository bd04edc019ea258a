// SPDX-License-Identifier: Apache-2.0
// The techniques that several families share: what the mechanism is, and where it pays.
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
  std::string_view where;      // it pays best; empty: anywhere. Records say how often it does
};

// In the order in which a reader would try them.
inline constexpr TechniqueRow kTechniques[] = {
    {Technique::kTensorCores, "Tensor cores",
     "Q K^T and P V run on WMMA, mma.sync or wgmma instead of FMAs.", ""},
    {Technique::kCopiesAhead, "Copies ahead of use",
     "cp.async or TMA fetches the next K/V tile while the current one is computed.",
     "nothing else hides the latency of loads from L2"},
    {Technique::kScoresInRegisters, "S and P in registers",
     "The softmax works on accumulator fragments, and P becomes an operand in place.",
     "registers hold all of the softmax; half of it in registers loses on small grids"},
    {Technique::kSmemLayout, "Shared memory without bank conflicts",
     "Padding or an XOR swizzle puts the rows of a fragment into different banks.",
     "rows of a tile would share banks"},
    {Technique::kSoftmaxOverlap, "Softmax beside MMAs",
     "The exponentials of one tile run while the tensor cores multiply another.",
     "a CTA walks over several tiles, and no second CTA shares its SM"},
    {Technique::kWarpSpecialisation, "Warp specialisation",
     "Warps that only copy compute the addresses and wait, so that other warps only compute.",
     "producers cost no resident CTA, as where registers can move to the compute warps"},
    {Technique::kPingPong, "Ping-pong scheduling",
     "Warpgroups alternate on the tensor cores by named barriers.",
     "head_dim is 64 and three warpgroups share the tensor cores"},
    {Technique::kTileSchedule, "Persistent CTAs, tile order",
     "Each CTA computes several tiles, from a list or a counter, the longest first.",
     "masks are causal and sequences long, so that a CTA has many tiles"},
    {Technique::kLazyRescale, "Lazy rescaling",
     "O is rescaled only where a row's maximum rises far.",
     "sequences are long and grids full: by thread maxima at head_dim 64 and 128, by row maxima "
     "at 256"},
    {Technique::kExponentials, "Cheaper exponentials",
     "log2(e) is folded into the scale, or a polynomial takes a share of the MUFU's work.",
     "it saves instructions and issue slots are the limit"},
    {Technique::kSplitKv, "Split-KV",
     "Warpgroups, a cluster or CTAs divide the keys of a row and combine partial results.",
     "query rows are too few to fill the SMs"},
    {Technique::kPackedHeads, "Packed query heads", "Query heads that share K and V fill one tile.",
     "grouped heads decode; small batches also need split-KV"},
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
