// SPDX-License-Identifier: Apache-2.0
// The ladder of the wgmma family, and its end without one toggle.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_

#include <string>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_mma.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {

// All of them but the family itself can be left out.
inline Design HopperLeaveOneOutDesign() {
  std::vector<const sdpa::ToggleRow*> rows = HopperToggles();
  sdpa::Config full;
  for (const sdpa::ToggleRow* row : rows) full.*row->field = FirstOnLevel(*row);
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
  Design design = {.name = "hopper",
                   .label =
                       "the Hopper kernel: each toggle of the wgmma family on top of all before "
                       "it, from the end of the mma family's with Q in shared memory",
                   .arms = {},
                   .infeasible = {},
                   .head_dims = {64, 128}};
  std::string previous = "hopper:mma_end";
  design.arms.push_back(
      {.name = previous, .config = MmaWideCore(), .role = "base", .toggle = "", .base = ""});
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : HopperToggles()) {
    config.*row->field = FirstOnLevel(*row);
    std::string name = "hopper:" + std::string(row->id);
    design.arms.push_back({.name = name,
                           .config = config,
                           .role = "step",
                           .toggle = std::string(row->id),
                           .base = previous});
    previous = std::move(name);
  }
  PlantControls("hopper_control", previous, config, &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_
