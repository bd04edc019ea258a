// SPDX-License-Identifier: Apache-2.0
// The ladders of the wgmma and of the small-problem kernel, the former's end without one toggle,
// and the designs of the pipelined Hopper kernel for grouped heads and few rows of queries.
//
//   hopper_decode  one row a head: a CTA per tile; keys shared among CTAs, heads packed into a
//                  tile, and both; on both what L2 fetches, shorter tiles of keys, a dependent
//                  launch, and a kernel of its own or a cluster that joins, with these two on top
//   hopper_gqa     prompts with grouped heads, where tiles are full of rows without packing
//
// Included by designs.h, at its end.

#pragma once

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_hopper_plus.h"
#include "ablations/subjects/sdpa/designs/designs_mma.h"
#include "ablations/subjects/sdpa/designs/designs_wmma.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {

// All of them but the family itself can be left out.
inline Design HopperLeaveOneOutDesign() {
  ToggleRows rows = HopperToggles();
  const sdpa::Config full = AllOn(rows);
  rows.erase(rows.begin());
  Design design = LeaveOneOutOf(
      "hopper_leave_one_out",
      "the whole Hopper kernel, against the same without one toggle and those that need it", rows,
      full);
  design.head_dims = {64, 128, 256};
  return design;
}

// The toggles of the wgmma family, each on top of all before it; the first is judged
// against the whole of the mma family's ladder but for Q in registers, which spills at
// head_dim 128.
inline Design HopperDesign() {
  const std::string base = "hopper:mma_end";
  Design design = {.name = "hopper",
                   .label =
                       "the Hopper kernel: each toggle of the wgmma family on top of all before "
                       "it, from the end of the mma family's with Q in shared memory",
                   .arms = {{base, MmaWideCore()}},
                   .head_dims = {64, 128},
                   .span = Span::kCumulative};
  PlantControls("hopper_control", AddLadder("hopper", HopperToggles(), {}, base, &design), &design);
  return design;
}

// Small problems, step by step. Each toggle of the family on top of all before it, from the
// pipelined kernel with one consumer warpgroup. That kernel with its ring and its overlap stands
// beside it: more toggles than the first step has, and the one to beat. So does the last step with
// one warpgroup: what two bring turns with the number of keys.
inline Design HopperSmallDesign() {
  const std::string base = "hopper_small:wgmma";
  const sdpa::Config config = {.wgmma = 1};
  Design design = {
      .name = "hopper_small",
      .label =
          "small problems on Hopper: each toggle of the small-problem kernel on top of "
          "all before it, from the pipelined kernel",
      .arms = {{base, config},
               {"hopper_small:pipelined", {.wgmma = 1, .kv_ring_stages = 1, .softmax_overlap = 1}}},
      .span = Span::kCumulative};
  const std::string last =
      AddLadder("hopper_small", LadderToggles(sdpa::Family::kResident), config, base, &design);
  sdpa::Config narrow = ConfigOf(design, last);
  narrow.kv_warpgroups = 0;
  design.arms.push_back({"hopper_small:one_kv_warpgroup", narrow, "without",
                         std::string(sdpa::ToggleId(&sdpa::Config::kv_warpgroups)), last});
  PlantControls("hopper_small_control", last, &design);
  return design;
}

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
