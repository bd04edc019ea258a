// SPDX-License-Identifier: Apache-2.0
// The design of SDPA behind its projection (reports/decisions/0016-fusion.md): what
// stands in front of attention, in kernels of its own and fused into it.
//
// Standard library only, as designs.h.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_FUSION_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_FUSION_H_

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_mma.h"
#include "kernels/sdpa/registry/config.h"

namespace warpledger::ablations {

// Three chains, for a fused kernel can't have every attention tile. The first has the
// best for few rows (0014) and nothing fused into it: what one would use instead.
inline Design FusionDesign() {
  using sdpa::Config;
  Design design = {
      .name = "fusion",
      .label = "layernorm, QKV projection and attention: in kernels of their own, and fused",
      .arms = {},
      .infeasible = {},
      .head_dims = {64},
      .projected = true};
  Config best = MmaEverythingOn();
  best.mma_tile = 2;
  best.mma_key_groups = 4;
  best.mma_softmax_overlap = 1;
  best.mma_lazy_rescale = 0;
  best.mma_longest_first = 0;
  const std::string first = "fusion:unfused";
  design.arms.push_back({.name = first, .config = best, .role = "base", .toggle = "", .base = ""});
  AddStep("fusion:project_mma", best, &Config::project_mma, 1, first, &design);
  best.project_mma = 1;
  AddStep("fusion:project_mma+fuse_layernorm", best, &Config::fuse_layernorm, 1,
          "fusion:project_mma", &design);

  // Fuses the projection at `level` into `attention`, then the layernorm too.
  const auto fuse = [&design](const std::string& name, Config attention, int level) {
    attention.project_mma = 1;
    design.arms.push_back(
        {.name = name, .config = attention, .role = "base", .toggle = "", .base = ""});
    const std::string fused = name + "+fuse_projection=" + std::to_string(level);
    AddStep(fused, attention, &Config::fuse_projection, level, name, &design);
    attention.fuse_projection = level;
    AddStep(fused + "+fuse_layernorm", attention, &Config::fuse_layernorm, 1, fused, &design);
    attention.fuse_layernorm = 1;
    return attention;
  };
  // Tiles of 64 rows and 64 keys, which is what a CTA projects at a time.
  Config square = best;
  square.project_mma = 0;
  square.mma_tile = 0;
  square.mma_key_groups = 2;
  // What projects K and V itself has no copies to run ahead.
  Config single = square;
  single.mma_key_groups = 0;
  single.mma_cp_async_stages = 0;
  single.mma_softmax_overlap = 0;
  fuse("fusion:single", single, 1);
  const Config all = fuse("fusion:square", square, 2);
  PlantControls("fusion_control", design.arms.back().name, all, &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_FUSION_H_
