// SPDX-License-Identifier: Apache-2.0
// The designs of the pipelined Hopper kernel for grouped heads and few rows of queries.
//
//   hopper_decode  one row a head: a CTA per tile; keys shared among CTAs, heads packed into a
//                  tile, and both; on both what L2 fetches, shorter tiles of keys, a dependent
//                  launch, and a kernel of its own or a cluster that joins, with these two on top
//   hopper_gqa     prompts with grouped heads, where tiles are full of rows without packing
//
// Included by designs.h, at its end.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_DECODE_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_DECODE_H_

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_hopper_plus.h"
#include "ablations/subjects/sdpa/designs/designs_wmma.h"
#include "kernels/sdpa/registry/config.h"

namespace warpledger::ablations {

inline Design HopperDecodeDesign() {
  using sdpa::Config;
  const std::string base = "hopper_decode:base";
  const Config config = {
      .wgmma = 1, .kv_ring_stages = 1, .softmax_overlap = 1, .wgmma_tile_per_cta = 1};
  Design design = {.name = "hopper_decode",
                   .label = "decoding with the Hopper kernel: split-KV, head packing, and both",
                   .arms = {{base, config}},
                   .head_dims = {64, 128},
                   .reads_kv = true};
  AddLevel({&Config::wgmma_split_kv, 1}, base, '+', &design);
  const std::string packed = AddLevel({&Config::wgmma_pack_heads, 1}, base, '+', &design);
  AddLevel({&Config::wgmma_l2_promotion, 1}, packed, '+', &design);
  const std::string both = AddLevel({&Config::wgmma_split_kv, 1}, packed, '+', &design);
  AddLevel({&Config::wgmma_l2_promotion, 1}, both, '+', &design);
  const std::string dependent = AddLevel({&Config::wgmma_dependent_launch, 1}, both, '+', &design);
  AddLevel({&Config::wgmma_l2_promotion, 1}, dependent, '+', &design);
  const std::string joined = AddLevel({&Config::wgmma_join_kernel, 1}, both, '+', &design);
  const std::string behind = AddLevel({&Config::wgmma_dependent_launch, 1}, joined, '+', &design);
  AddLevel({&Config::wgmma_tile, 3}, behind, '+', &design);
  const std::string cluster = AddLevel({&Config::wgmma_cluster_join, 1}, both, '+', &design);
  const std::string early = AddLevel({&Config::wgmma_dependent_launch, 1}, cluster, '+', &design);
  AddLevel({&Config::wgmma_tile, 3}, early, '+', &design);
  const std::string shorter = AddLevel({&Config::wgmma_tile, 3}, both, '+', &design);
  AddLevel({&Config::wgmma_dependent_launch, 1}, shorter, '+', &design);
  design.predicted_on = {base, both};
  PlantControls(base, base, &design);
  return design;
}

inline Design HopperGqaDesign() {
  const std::string base(kHopperEnd);
  Design design = {
      .name = "hopper_gqa",
      .label = "prompts with grouped heads: query heads of a K/V head packed into the tile or not",
      .arms = {{base, HopperEverythingOn()}},
      .head_dims = {64, 128}};
  AddLevel({&sdpa::Config::wgmma_pack_heads, 1}, base, ':', &design);
  design.predicted_on = {base};
  PlantControls(base, base, &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_DECODE_H_
