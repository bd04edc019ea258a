// SPDX-License-Identifier: Apache-2.0
// The ladder of the wgmma family, and its end without one toggle.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "ablations/subjects/sdpa/designs/designs_hopper_plus.h"
#include "ablations/subjects/sdpa/designs/designs_mma.h"
#include "kernels/sdpa/registry/config.h"

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
                   .head_dims = {64, 128}};
  PlantControls("hopper_control", AddLadder("hopper", HopperToggles(), {}, base, &design), &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_H_
