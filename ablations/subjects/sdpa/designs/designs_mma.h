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

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_MMA_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_MMA_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_wmma.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"

namespace warpledger::ablations {

// The family's techniques in registry order: the steps of its ladder.
inline std::vector<const sdpa::ToggleRow*> MmaToggles() {
  std::vector<const sdpa::ToggleRow*> rows;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !row.in_ladder || !Includes(row.families, sdpa::Family::kMma)) continue;
    rows.push_back(&row);
  }
  return rows;
}

// The end of the family's ladder.
inline sdpa::Config MmaEverythingOn() {
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : MmaToggles()) config.*row->field = FirstOnLevel(*row);
  return config;
}

// Adds a step: `config` with `toggle` at `level`, against the arm `base`.
inline void AddStep(const std::string& name, const sdpa::Config& config, sdpa::ToggleField toggle,
                    int level, const std::string& base, Design* design) {
  sdpa::Config more = config;
  more.*toggle = level;
  design->arms.push_back({.name = name,
                          .config = more,
                          .role = "step",
                          .toggle = std::string(sdpa::ToggleId(toggle)),
                          .base = base});
}

inline Design MmaDesign() {
  Design design = {.name = "mma",
                   .label =
                       "the mma.sync kernel: each toggle of the mma family on top of all before "
                       "it, from the end of the ladder",
                   .arms = {}};
  std::string previous = "mma:ladder_end";
  design.arms.push_back(
      {.name = previous, .config = EverythingOn(), .role = "base", .toggle = "", .base = ""});
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : MmaToggles()) {
    std::string name = "mma:" + std::string(row->id);
    AddStep(name, config, row->field, FirstOnLevel(*row), previous, &design);
    config = design.arms.back().config;
    previous = std::move(name);
  }
  PlantControls("mma_control", previous, config, &design);
  return design;
}

// `full` without each of the family's toggles but those `kept`.
inline Design MmaWithoutDesign(const std::string& name, const std::string& label,
                               const sdpa::Config& full, std::vector<int> head_dims,
                               const std::vector<sdpa::ToggleField>& kept) {
  Design design = {
      .name = name,
      .label = label,
      .arms = {{.name = name + ":full", .config = full, .role = "base", .toggle = "", .base = ""}},
      .infeasible = {},
      .head_dims = std::move(head_dims)};
  for (const sdpa::ToggleRow* row : MmaToggles()) {
    if (full.*row->field == 0) continue;
    if (std::find(kept.begin(), kept.end(), row->field) != kept.end()) continue;
    sdpa::Config without = full;
    without.*row->field = 0;
    design.arms.push_back({.name = name + ":without_" + std::string(row->id),
                           .config = without,
                           .role = "without",
                           .toggle = std::string(row->id),
                           .base = name + ":full"});
  }
  PlantControls(name, name + ":full", full, &design);
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

// Every level of `toggle` on `config`, each against level 0.
inline Design MmaSweepDesign(const std::string& name, const std::string& label, sdpa::Config config,
                             sdpa::ToggleField toggle) {
  config.*toggle = 0;
  const std::string id(sdpa::ToggleId(toggle));
  Design design = {
      .name = name,
      .label = label,
      .arms = {
          {.name = name + ":off", .config = config, .role = "base", .toggle = "", .base = ""}}};
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.field != toggle) continue;
    for (std::size_t i = 1; i < row.levels.count; ++i) {
      AddStep(name + ":" + std::to_string(row.levels.values[i]), config, toggle,
              row.levels.values[i], name + ":off", &design);
    }
  }
  PlantControls(name, name + ":off", config, &design);
  return design;
}

// What is no step of the ladder, on the ladder's end.
inline Design MmaOptionsDesign() {
  using sdpa::Config;
  const Config full = MmaEverythingOn();
  Design design = {
      .name = "mma_options",
      .label = "options of the mma kernel, each on the end of its ladder",
      .arms = {
          {.name = "mma_options:base", .config = full, .role = "base", .toggle = "", .base = ""}}};
  for (const sdpa::ToggleField toggle :
       {&Config::mma_fp16_accumulate, &Config::mma_producer_warps, &Config::mma_persistent}) {
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.field != toggle) continue;
      for (std::size_t i = 1; i < row.levels.count; ++i) {
        const int level = row.levels.values[i];
        AddStep("mma_options:" + std::string(row.id) + "=" + std::to_string(level), full, toggle,
                level, "mma_options:base", &design);
      }
    }
  }
  // Two groups make 256 threads of the same 32 rows a warp.
  AddStep("mma_options:mma_key_groups=2", full, &Config::mma_key_groups, 2, "mma_options:base",
          &design);
  PlantControls("mma_options", "mma_options:base", full, &design);
  return design;
}

// Tiles of 32 rows, as few rows want, with two and four groups of warps; and
// split-KV, the same idea over CTAs.
inline Design MmaGroupsDesign() {
  using sdpa::Config;
  Config config = MmaEverythingOn();
  config.mma_tile = 2;
  config.mma_lazy_rescale = 0;
  config.mma_longest_first = 0;
  Design design = {
      .name = "mma_groups",
      .label =
          "32-row tiles of the mma kernel: keys split over groups of warps, or "
          "over CTAs",
      .arms = {
          {.name = "mma_groups:base", .config = config, .role = "base", .toggle = "", .base = ""}}};
  for (const int groups : {2, 4}) {
    AddStep("mma_groups:mma_key_groups=" + std::to_string(groups), config, &Config::mma_key_groups,
            groups, "mma_groups:base", &design);
  }
  AddStep("mma_groups:mma_split_kv", config, &Config::mma_split_kv, 1, "mma_groups:base", &design);
  AddStep("mma_groups:mma_softmax_overlap", config, &Config::mma_softmax_overlap, 1,
          "mma_groups:base", &design);
  Config deep = config;
  deep.mma_key_groups = 4;
  AddStep("mma_groups:mma_key_groups=4+stages=3", deep, &Config::mma_cp_async_stages, 3,
          "mma_groups:mma_key_groups=4", &design);
  AddStep("mma_groups:mma_key_groups=4+overlap", deep, &Config::mma_softmax_overlap, 1,
          "mma_groups:mma_key_groups=4", &design);
  PlantControls("mma_groups", "mma_groups:base", config, &design);
  return design;
}

// The ways to launch `config`, whose arm is `base`.
inline void AddLaunchSteps(const std::string& base, const sdpa::Config& config, Design* design) {
  using sdpa::Config;
  for (const sdpa::ToggleField toggle :
       {&Config::mma_dependent_launch, &Config::stream_launch, &Config::l2_persisting_kv}) {
    AddStep(base + "+" + std::string(sdpa::ToggleId(toggle)), config, toggle, 1, base, design);
  }
}

// Where a call is short: the tile and the groups that 0014 found best for few rows.
inline Design MmaLaunchDesign() {
  sdpa::Config config = MmaEverythingOn();
  config.mma_tile = 2;
  config.mma_key_groups = 4;
  config.mma_softmax_overlap = 1;
  config.mma_lazy_rescale = 0;
  config.mma_longest_first = 0;
  Design design = {
      .name = "mma_launch",
      .label = "how calls of the mma kernel are launched: graph, stream, dependent; L2's window",
      .arms = {
          {.name = "mma_launch:base", .config = config, .role = "base", .toggle = "", .base = ""}}};
  AddLaunchSteps("mma_launch:base", config, &design);
  PlantControls("mma_launch", "mma_launch:base", config, &design);
  return design;
}

// Decoding with everything that helps it; K and V are its whole traffic.
inline sdpa::Config MmaDecodeEverythingOn() {
  sdpa::Config config = MmaEverythingOn();
  config.mma_tile = 3;
  config.mma_key_groups = 4;
  config.mma_cp_async_stages = 3;
  config.mma_lazy_rescale = 0;
  config.mma_longest_first = 0;
  config.mma_pack_heads = 1;
  config.mma_split_kv = 1;
  return config;
}

// One row of each head: a warp per 16-row tile and four groups of keys.
inline Design MmaDecodeDesign() {
  using sdpa::Config;
  Config config = MmaDecodeEverythingOn();
  config.mma_split_kv = 0;
  Config packed = config;
  config.mma_pack_heads = 0;
  Design design = {
      .name = "mma_decode",
      .label = "decoding with the mma kernel: split-KV, head packing, and both",
      .arms =
          {{.name = "mma_decode:base", .config = config, .role = "base", .toggle = "", .base = ""}},
      .infeasible = {},
      .head_dims = {64, 128},
      .reads_kv = true};
  AddStep("mma_decode:mma_split_kv", config, &Config::mma_split_kv, 1, "mma_decode:base", &design);
  AddStep("mma_decode:mma_pack_heads", config, &Config::mma_pack_heads, 1, "mma_decode:base",
          &design);
  const std::string both = "mma_decode:mma_pack_heads+mma_split_kv";
  AddStep(both, packed, &Config::mma_split_kv, 1, "mma_decode:mma_pack_heads", &design);
  packed.mma_split_kv = 1;
  AddLaunchSteps(both, packed, &design);
  // The copy engine keeps rows as they are: padded, they conflict as little as swizzled.
  std::string last = both;
  for (const Level& step :
       {Level{&Config::mma_smem_layout, 2}, Level{&Config::mma_bulk_copy, 1},
        Level{&Config::l2_persisting_kv, 1}, Level{&Config::mma_dependent_launch, 1}}) {
    last = AddLevel(step, last, '+', &design);
  }
  PlantControls("mma_decode", "mma_decode:base", config, &design);
  return design;
}

// Prompts: a tile is full of rows with and without packing, which decoding's is not.
inline Design MmaGqaDesign() {
  const sdpa::Config config = MmaWideCore();
  Design design = {
      .name = "mma_gqa",
      .label = "prompts with grouped heads: query heads of a K/V head packed into the tile or not",
      .arms =
          {{.name = "mma_gqa:base", .config = config, .role = "base", .toggle = "", .base = ""}},
      .infeasible = {},
      .head_dims = {64, 128}};
  AddStep("mma_gqa:mma_pack_heads", config, &sdpa::Config::mma_pack_heads, 1, "mma_gqa:base",
          &design);
  PlantControls("mma_gqa", "mma_gqa:base", config, &design);
  return design;
}

// Every way to store K and V in 8 bits on `config`, each against 16 bits; then a scale per
// tile, against the same format with one per head.
inline Design MmaDtypeDesign(const std::string& name, const std::string& label,
                             const sdpa::Config& config, std::vector<int> head_dims) {
  using sdpa::Config;
  Design design = {
      .name = name,
      .label = label,
      .arms =
          {{.name = name + ":fp16", .config = config, .role = "base", .toggle = "", .base = ""}},
      .infeasible = {},
      .head_dims = std::move(head_dims)};
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.field != &Config::mma_kv_dtype) continue;
    for (std::size_t i = 1; i < row.levels.count; ++i) {
      const int level = row.levels.values[i];
      const std::string arm = name + ":mma_kv_dtype=" + std::to_string(level);
      AddStep(arm, config, row.field, level, name + ":fp16", &design);
    }
  }
  for (const sdpa::MmaKv kv : {sdpa::MmaKv::kUint8Arithmetic, sdpa::MmaKv::kE4m3}) {
    Config stored = config;
    stored.mma_kv_dtype = static_cast<int>(kv);
    const std::string base = name + ":mma_kv_dtype=" + std::to_string(stored.mma_kv_dtype);
    AddStep(base + "+block_scale", stored, &Config::mma_kv_block_scale, 1, base, &design);
  }
  PlantControls(name, name + ":fp16", config, &design);
  return design;
}

// No toggle: another dtype is another problem.
inline Design MmaBf16Design() {
  const sdpa::Config config = MmaWideCore();
  Design design = {
      .name = "mma_bf16",
      .label = "the mma kernel with Q in shared memory, in fp16 and in bf16",
      .arms =
          {{.name = "mma_bf16:full", .config = config, .role = "base", .toggle = "", .base = ""}},
      .infeasible = {},
      .head_dims = {64, 128},
      .dtypes = {sdpa::Dtype::kFp16, sdpa::Dtype::kBf16}};
  PlantControls("mma_bf16", "mma_bf16:full", config, &design);
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

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_MMA_H_
