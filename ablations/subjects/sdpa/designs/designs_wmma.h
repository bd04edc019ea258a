// SPDX-License-Identifier: Apache-2.0
// The designs of the wmma kernel's techniques beyond the ladder.
//
//   stage2_plus  each level of each of them alone on top of the ladder's end, which is
//                the L4 notes' stage 2; then two chains of them, for grids that leave
//                SMs idle and for grids that don't
//   wmma_d128    the ladder's end at head_dim 128: its neighbours, and the chain for grids
//                that leave no SM idle, each an arm at head_dim 64 too
//
// Included by designs.h, at its end.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::ablations {

// "sp_reuse", and "tile_m=64" where there is more than one on-level.
inline std::string LevelName(const sdpa::ToggleRow& row, int level) {
  std::string name(row.id);
  if (row.levels.count == 2 && level != 0) return name;
  name += '=';
  name += std::to_string(level);
  return name;
}

// Adds a step to `level` of a toggle from the arm `base`, named as `base` with
// `separator` and the level behind it, or the reason why there is none at one of the
// design's head dimensions. Where the design has the configuration already nothing is
// added. Returns the arm's name.
inline std::string AddLevel(const Level& step, const std::string& base, char separator,
                            Design* design) {
  const std::string name = base + separator + LevelName(RowOf(step.field), step.level);
  sdpa::Config config = ConfigOf(*design, base);
  AddNeeds(step.field, &config);
  config.*step.field = step.level;
  for (const int head_dim : design->head_dims) {
    sdpa::Config compiled = config;
    compiled.head_dim = head_dim;
    if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(compiled)) {
      design->infeasible.push_back(Infeasible(name, reason));
      return name;
    }
  }
  for (const DesignArm& arm : design->arms) {
    if (arm.config == config) return arm.name;
  }
  design->arms.push_back({name, config, step.level == 0 ? "without" : "step",
                          std::string(sdpa::ToggleId(step.field)), base});
  return name;
}

inline Design Stage2PlusDesign() {
  using sdpa::Config;
  const std::string stage2 = "stage2";
  const Config end = EverythingOn();
  Design design = {
      .name = "stage2_plus",
      .label =
          "the wmma kernel beyond the ladder: each technique alone on its end, level by level, "
          "and chains of those that paid",
      .arms = {{stage2, end}}};
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !sdpa::Includes(row.families, sdpa::Family::kSmem)) continue;
    // Of the ladder's own toggles those with levels that it left out.
    if (row.in_ladder && row.levels.count == 2) continue;
    for (std::size_t i = 0; i < row.levels.count; ++i) {
      const int level = row.levels.values[i];
      if (level != end.*row.field) AddLevel({row.field, level}, stage2, ':', &design);
    }
  }

  const std::vector<Level> chains[] = {
      // Longest first is made for CTAs that take their work from a counter.
      {{&Config::cta_order, 2}, {&Config::persistent, 2}},
      // One CTA per SM: nothing but its own warps hides its latency.
      {{&Config::softmax_in_registers, 3},
       {&Config::exp_method, 1},
       {&Config::tile_n, 128},
       {&Config::producer_warps, 2}},
      // Many: they hide it for each other, and traffic counts.
      {{&Config::softmax_in_registers, 3},
       {&Config::exp_method, 1},
       {&Config::tile_n, 64},
       {&Config::tile_m, 64}},
  };
  for (const std::vector<Level>& chain : chains) {
    std::string last = stage2;
    for (const Level& step : chain) {
      last = AddLevel(step, last, last == stage2 ? ':' : '+', &design);
    }
  }

  // What WMMA can't read, the FP32 pipes can.
  const std::string fp32_pipes = "fp32_pipes";
  Config without_wmma = end;
  without_wmma.wmma_qk = 0;
  without_wmma.wmma_pv = 0;
  design.arms.push_back({fp32_pipes, without_wmma});
  AddLevel({&Config::xor_swizzle, 1}, fp32_pipes, ':', &design);
  design.predicted_on = {stage2, fp32_pipes};
  PlantControls(stage2, stage2, &design);
  return design;
}

inline Design WmmaD128Design() {
  using sdpa::Config;
  const std::string base = "wmma_d128";
  const Config end = EverythingOn();
  Design design = {
      .name = base,
      .label =
          "the wmma kernel at head_dim 128: the ladder's end, its neighbours and the chain of "
          "techniques for grids that leave no SM idle",
      .arms = {{base, end}},
      .head_dims = {128}};
  Config without_wmma_pv = end;
  without_wmma_pv.wmma_pv = 0;
  design.arms.push_back({base + ":without_wmma_pv", without_wmma_pv, "without", "wmma_pv", base});
  AddLevel({&Config::cp_async_stages, 0}, base, ':', &design);
  AddLevel({&Config::tile_n, 64}, base, ':', &design);
  // K and V alone take 136 KiB: one CTA per SM, and no room for a third stage.
  const std::string long_tile = AddLevel({&Config::tile_n, 128}, base, ':', &design);
  AddLevel({&Config::cp_async_stages, 3}, long_tile, '+', &design);

  std::string last = base;
  for (const Level& step : {Level{&Config::softmax_in_registers, 3}, Level{&Config::exp_method, 1},
                            Level{&Config::tile_n, 64}, Level{&Config::tile_m, 64}}) {
    last = AddLevel(step, last, last == base ? ':' : '+', &design);
  }
  PlantControls(base, base, &design);
  return design;
}

}  // namespace warpledger::ablations
