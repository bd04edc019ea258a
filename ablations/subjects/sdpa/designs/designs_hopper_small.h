// SPDX-License-Identifier: Apache-2.0
// The design of the resident family: small problems on Hopper, step by step.
//
// Standard library only, as designs.h.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_

#include <string>
#include <utility>

#include "ablations/subjects/sdpa/designs/design.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {

// Each toggle of the family on top of all before it, from the pipelined kernel with one
// consumer warpgroup. That kernel with its ring and its overlap stands beside it: more
// toggles than the first step has, and the one to beat. So does the last step with one
// warpgroup: what two bring turns with the number of keys.
inline Design HopperSmallDesign() {
  Design design = {.name = "hopper_small",
                   .label =
                       "small problems on Hopper: each toggle of the resident family on top of "
                       "all before it, from the pipelined kernel",
                   .arms = {}};
  sdpa::Config config = {.wgmma = 1};
  std::string previous = "hopper_small:wgmma";
  design.arms.push_back(
      {.name = previous, .config = config, .role = "base", .toggle = "", .base = ""});
  sdpa::Config pipelined = config;
  pipelined.kv_ring_stages = 1;
  pipelined.softmax_overlap = 1;
  design.arms.push_back({.name = "hopper_small:pipelined",
                         .config = pipelined,
                         .role = "base",
                         .toggle = "",
                         .base = ""});
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !row.in_ladder || !Includes(row.families, sdpa::Family::kResident)) continue;
    if (config.*row.field != 0) continue;
    config.*row.field = FirstOnLevel(row);
    std::string name = "hopper_small:" + std::string(row.id);
    design.arms.push_back({.name = name,
                           .config = config,
                           .role = "step",
                           .toggle = std::string(row.id),
                           .base = previous});
    previous = std::move(name);
  }
  sdpa::Config narrow = config;
  narrow.kv_warpgroups = 0;
  design.arms.push_back({.name = "hopper_small:one_kv_warpgroup",
                         .config = narrow,
                         .role = "without",
                         .toggle = std::string(sdpa::ToggleId(&sdpa::Config::kv_warpgroups)),
                         .base = previous});
  PlantControls("hopper_small_control", previous, config, &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_
