// SPDX-License-Identifier: Apache-2.0
// The designs of the mma family.
//
//   mma                cumulative ladder from the end of the smem family's
//   mma_leave_one_out  the ladder's end without one toggle
//   mma_d128           the same without Q in registers, which 32 rows a warp leave no room
//                      for at head_dim 128
//   mma_layout, mma_stages, mma_exp, mma_tiles
//                      sweeps: each level against off
//   mma_options        what is no step of the ladder, each on the ladder's end
//   mma_groups         few rows: groups of warps and split-KV
//   mma_decode         one row a head: split-KV, head packing, and both; ways to launch both
//   mma_launch         few rows: how calls are launched
//   mma_gqa            prompts with grouped heads: head packing where tiles are full without it
//   mma_dtype          8-bit K and V on the ladder's end, with scales per head and per tile
//   mma_decode_dtype   the same where K and V are all that is read
//   mma_bf16           the kernel of mma_d128 in fp16 and bf16, each beside its peers
//
// Arms of the same configuration in several designs are one compiled instance.

#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_wmma.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {

inline ToggleRows MmaToggles() { return LadderToggles(sdpa::Family::kMma); }
// The end of the family's ladder.
inline sdpa::Config MmaEverythingOn() { return AllOn(MmaToggles()); }

inline Design MmaDesign() {
  const std::string base = "mma:ladder_end";
  Design design = {.name = "mma",
                   .label =
                       "the mma.sync kernel: each toggle of the mma family on top of all before "
                       "it, from the end of the ladder",
                   .arms = {{base, EverythingOn()}},
                   .span = Span::kCumulative};
  PlantControls("mma_control", AddLadder("mma", MmaToggles(), {}, base, &design), &design);
  return design;
}

// `full` without each of the family's toggles but those `kept`.
inline Design MmaWithoutDesign(const std::string& name, const std::string& label,
                               const sdpa::Config& full, std::vector<int> head_dims,
                               const std::vector<sdpa::ToggleField>& kept) {
  const std::string base = name + ":full";
  Design design = {
      .name = name, .label = label, .arms = {{base, full}}, .head_dims = std::move(head_dims)};
  for (const sdpa::ToggleRow* row : MmaToggles()) {
    if (full.*row->field == 0) continue;
    if (std::find(kept.begin(), kept.end(), row->field) != kept.end()) continue;
    sdpa::Config without = full;
    without.*row->field = 0;
    const std::string id(row->id);
    design.arms.push_back({name + ":without_" + id, without, "without", id, base});
  }
  PlantControls(name, base, &design);
  return design;
}

inline Design MmaLeaveOneOutDesign() {
  return MmaWithoutDesign("mma_leave_one_out",
                          "the end of the mma ladder, against the same without one toggle",
                          MmaEverythingOn(), {64}, {&sdpa::Config::mma_sync});
}

inline sdpa::Config MmaWideCore() {
  sdpa::Config config = MmaEverythingOn();
  config.mma_q_registers = 0;
  return config;
}

// P stays in registers: the addresses of its way through shared memory spill there.
inline Design MmaD128Design() {
  return MmaWithoutDesign("mma_d128",
                          "the mma kernel for head_dim 128 (Q in shared memory), against the same "
                          "without one toggle",
                          MmaWideCore(), {64, 128},
                          {&sdpa::Config::mma_sync, &sdpa::Config::mma_p_registers});
}

// Adds every level of `toggle` on the arm `base`, named as `prefix` with the level behind it.
inline void AddLevels(const std::string& prefix, sdpa::ToggleField toggle, const std::string& base,
                      Design* design) {
  for (const int level : OnLevels(RowOf(toggle))) {
    AddStep(prefix + std::to_string(level), {toggle, level}, base, design);
  }
}

// Every level of `toggle` on `config`, each against level 0.
inline Design MmaSweepDesign(const std::string& name, const std::string& label, sdpa::Config config,
                             sdpa::ToggleField toggle) {
  config.*toggle = 0;
  const std::string off = name + ":off";
  Design design = {.name = name, .label = label, .arms = {{off, config}}};
  AddLevels(name + ":", toggle, off, &design);
  PlantControls(name, off, &design);
  return design;
}

// What is no step of the ladder, on the ladder's end.
inline Design MmaOptionsDesign() {
  using sdpa::Config;
  const std::string base = "mma_options:base";
  Design design = {.name = "mma_options",
                   .label = "options of the mma kernel, each on the end of its ladder",
                   .arms = {{base, MmaEverythingOn()}}};
  for (const sdpa::ToggleField toggle :
       {&Config::mma_fp16_accumulate, &Config::mma_producer_warps, &Config::mma_persistent}) {
    AddLevels("mma_options:" + std::string(sdpa::ToggleId(toggle)) + "=", toggle, base, &design);
  }
  // Two groups make 256 threads of the same 32 rows a warp.
  AddStep("mma_options:mma_key_groups=2", {&Config::mma_key_groups, 2}, base, &design);
  design.predicted_on = {base};
  PlantControls("mma_options", base, &design);
  return design;
}

// The end of the ladder with a tile for few rows, where its last two toggles bring nothing.
inline sdpa::Config MmaFewRows(int tile) {
  sdpa::Config config = MmaEverythingOn();
  config.mma_tile = tile;
  config.mma_lazy_rescale = 0;
  config.mma_longest_first = 0;
  return config;
}

// Tiles of 32 rows, as few rows want, with two and four groups of warps; and
// split-KV, the same idea over CTAs.
inline Design MmaGroupsDesign() {
  using sdpa::Config;
  const std::string base = "mma_groups:base";
  Design design = {.name = "mma_groups",
                   .label =
                       "32-row tiles of the mma kernel: keys split over groups of warps, or "
                       "over CTAs",
                   .arms = {{base, MmaFewRows(2)}}};
  AddLevels("mma_groups:mma_key_groups=", &Config::mma_key_groups, base, &design);
  AddStep("mma_groups:mma_split_kv", {&Config::mma_split_kv, 1}, base, &design);
  AddStep("mma_groups:mma_softmax_overlap", {&Config::mma_softmax_overlap, 1}, base, &design);
  const std::string deep = "mma_groups:mma_key_groups=4";
  AddStep(deep + "+stages=3", {&Config::mma_cp_async_stages, 3}, deep, &design);
  AddStep(deep + "+overlap", {&Config::mma_softmax_overlap, 1}, deep, &design);
  design.predicted_on = {base};
  PlantControls("mma_groups", base, &design);
  return design;
}

// The ways to launch the arm `base`.
inline void AddLaunchSteps(const std::string& base, Design* design) {
  using sdpa::Config;
  for (const sdpa::ToggleField toggle :
       {&Config::mma_dependent_launch, &Config::stream_launch, &Config::l2_persisting_kv}) {
    AddStep(base + "+" + std::string(sdpa::ToggleId(toggle)), {toggle, 1}, base, design);
  }
}

// The tile and the groups that 0014 found best for few rows.
inline sdpa::Config MmaBestForFewRows() {
  sdpa::Config config = MmaFewRows(2);
  config.mma_key_groups = 4;
  config.mma_softmax_overlap = 1;
  return config;
}

// Where a call is short.
inline Design MmaLaunchDesign() {
  const std::string base = "mma_launch:base";
  Design design = {
      .name = "mma_launch",
      .label = "how calls of the mma kernel are launched: graph, stream, dependent; L2's window",
      .arms = {{base, MmaBestForFewRows()}}};
  AddLaunchSteps(base, &design);
  design.predicted_on = {base};
  PlantControls("mma_launch", base, &design);
  return design;
}

// Decoding with everything that helps it; K and V are its whole traffic.
inline sdpa::Config MmaDecodeEverythingOn() {
  sdpa::Config config = MmaFewRows(3);
  config.mma_key_groups = 4;
  config.mma_cp_async_stages = 3;
  config.mma_pack_heads = 1;
  config.mma_split_kv = 1;
  return config;
}

// One row of each head: a warp per 16-row tile and four groups of keys.
inline Design MmaDecodeDesign() {
  using sdpa::Config;
  Config config = MmaDecodeEverythingOn();
  config.mma_split_kv = 0;
  config.mma_pack_heads = 0;
  const std::string base = "mma_decode:base";
  Design design = {.name = "mma_decode",
                   .label = "decoding with the mma kernel: split-KV, head packing, and both",
                   .arms = {{base, config}},
                   .head_dims = {64, 128},
                   .reads_kv = true};
  AddStep("mma_decode:mma_split_kv", {&Config::mma_split_kv, 1}, base, &design);
  const std::string packed = "mma_decode:mma_pack_heads";
  AddStep(packed, {&Config::mma_pack_heads, 1}, base, &design);
  const std::string both = packed + "+mma_split_kv";
  AddStep(both, {&Config::mma_split_kv, 1}, packed, &design);
  AddLaunchSteps(both, &design);
  // TMA keeps rows as they are: padded, they conflict as little as swizzled.
  const std::string padded = AddLevel({&Config::mma_smem_layout, 2}, both, '+', &design);
  design.predicted_on = {base, both, padded};
  std::string last = padded;
  for (const Level& step : {Level{&Config::mma_bulk_copy, 1}, Level{&Config::l2_persisting_kv, 1},
                            Level{&Config::mma_dependent_launch, 1}}) {
    last = AddLevel(step, last, '+', &design);
  }
  PlantControls("mma_decode", base, &design);
  return design;
}

// Prompts: a tile is full of rows with and without packing, which decoding's is not.
inline Design MmaGqaDesign() {
  const std::string base = "mma_gqa:base";
  Design design = {
      .name = "mma_gqa",
      .label = "prompts with grouped heads: query heads of a K/V head packed into the tile or not",
      .arms = {{base, MmaWideCore()}},
      .head_dims = {64, 128}};
  AddStep("mma_gqa:mma_pack_heads", {&sdpa::Config::mma_pack_heads, 1}, base, &design);
  PlantControls("mma_gqa", base, &design);
  return design;
}

// Every way to store K and V in 8 bits on `config`, each against 16 bits; then a scale per
// tile, against the same format with one per head.
inline Design MmaDtypeDesign(const std::string& name, const std::string& label,
                             const sdpa::Config& config, std::vector<int> head_dims) {
  using sdpa::Config;
  const std::string base = name + ":fp16";
  Design design = {
      .name = name, .label = label, .arms = {{base, config}}, .head_dims = std::move(head_dims)};
  const std::string stored = name + ":mma_kv_dtype=";
  AddLevels(stored, &Config::mma_kv_dtype, base, &design);
  for (const sdpa::MmaKv kv : {sdpa::MmaKv::kUint8Arithmetic, sdpa::MmaKv::kE4m3}) {
    const std::string per_head = stored + std::to_string(static_cast<int>(kv));
    AddStep(per_head + "+block_scale", {&Config::mma_kv_block_scale, 1}, per_head, &design);
  }
  PlantControls(name, base, &design);
  return design;
}

// No toggle: another dtype is another problem.
inline Design MmaBf16Design() {
  Design design = {.name = "mma_bf16",
                   .label = "the mma kernel with Q in shared memory, in fp16 and in bf16",
                   .arms = {{"mma_bf16:full", MmaWideCore()}},
                   .head_dims = {64, 128},
                   .dtypes = {sdpa::Dtype::kFp16, sdpa::Dtype::kBf16}};
  PlantControls("mma_bf16", "mma_bf16:full", &design);
  return design;
}

inline std::vector<Design> MmaDesigns() {
  using sdpa::Config;
  Config core = MmaEverythingOn();
  core.mma_tile = 0;
  return {
      MmaDesign(),
      MmaLeaveOneOutDesign(),
      MmaD128Design(),
      MmaSweepDesign("mma_layout", "shared-memory layouts of the mma kernel", core,
                     &Config::mma_smem_layout),
      MmaSweepDesign("mma_stages", "depths of the mma kernel's cp.async ring", core,
                     &Config::mma_cp_async_stages),
      MmaSweepDesign("mma_exp", "the mma kernel's exponentials", MmaEverythingOn(),
                     &Config::mma_exp),
      MmaSweepDesign("mma_tiles", "tiles of the mma kernel", core, &Config::mma_tile),
      MmaOptionsDesign(),
      MmaGroupsDesign(),
      MmaDecodeDesign(),
      MmaLaunchDesign(),
      MmaGqaDesign(),
      MmaDtypeDesign("mma_dtype", "the mma kernel with K and V in 8 bits", MmaEverythingOn(), {64}),
      MmaDtypeDesign("mma_decode_dtype", "decoding with K and V in 8 bits", MmaDecodeEverythingOn(),
                     {64, 128}),
      MmaBf16Design()};
}

}  // namespace warpledger::ablations
