// SPDX-License-Identifier: Apache-2.0
// The design of SDPA behind its projection (reports/decisions/0016-fusion.md): what
// stands in front of attention, in kernels of its own and fused into it.
//
// Standard library only, as designs.h.

#pragma once

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_mma.h"
#include "kernels/sdpa/registry/config.h"

namespace warpledger::ablations {

// Three chains, for a fused kernel can't have every attention tile. The first has the
// best for few rows (0014) and nothing fused into it: what one would use instead.
inline Design FusionDesign() {
  using sdpa::Config;
  const std::string first = "fusion:unfused";
  const Config best = MmaBestForFewRows();
  Design design = {
      .name = "fusion",
      .label = "layernorm, QKV projection and attention: in kernels of their own, and fused",
      .arms = {{first, best}},
      .projected = true};
  AddStep("fusion:project_mma", {&Config::project_mma, 1}, first, &design);
  AddStep("fusion:project_mma+fuse_layernorm", {&Config::fuse_layernorm, 1}, "fusion:project_mma",
          &design);

  // Fuses the projection at `level` into `attention`, then the layernorm too.
  const auto fuse = [&design](const std::string& name, Config attention, int level) {
    attention.project_mma = 1;
    design.arms.push_back({name, attention});
    const std::string fused = name + "+fuse_projection=" + std::to_string(level);
    AddStep(fused, {&Config::fuse_projection, level}, name, &design);
    AddStep(fused + "+fuse_layernorm", {&Config::fuse_layernorm, 1}, fused, &design);
  };
  // Tiles of 64 rows and 64 keys, which is what a CTA projects at a time.
  Config square = best;
  square.mma_tile = 0;
  square.mma_key_groups = 2;
  // What projects K and V itself has no copies to run ahead.
  Config single = square;
  single.mma_key_groups = 0;
  single.mma_cp_async_stages = 0;
  single.mma_softmax_overlap = 0;
  fuse("fusion:single", single, 1);
  fuse("fusion:square", square, 2);
  design.predicted_on = {first, "fusion:project_mma", "fusion:single"};
  PlantControls("fusion_control", design.arms.back().name, &design);
  return design;
}

}  // namespace warpledger::ablations
