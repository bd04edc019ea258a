// SPDX-License-Identifier: Apache-2.0
// The design of the resident family: small problems on Hopper, step by step.
//
// Standard library only, as designs.h.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_

#include <string>

#include "ablations/subjects/sdpa/designs/design.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {

// Each toggle of the family on top of all before it, from the pipelined kernel with one
// consumer warpgroup. That kernel with its ring and its overlap stands beside it: more
// toggles than the first step has, and the one to beat. So does the last step with one
// warpgroup: what two bring turns with the number of keys.
inline Design HopperSmallDesign() {
  const std::string base = "hopper_small:wgmma";
  const sdpa::Config config = {.wgmma = 1};
  Design design = {.name = "hopper_small",
                   .label =
                       "small problems on Hopper: each toggle of the resident family on top of "
                       "all before it, from the pipelined kernel",
                   .arms = {{base, config},
                            {"hopper_small:pipelined",
                             {.wgmma = 1, .kv_ring_stages = 1, .softmax_overlap = 1}}}};
  const std::string last =
      AddLadder("hopper_small", LadderToggles(sdpa::Family::kResident), config, base, &design);
  sdpa::Config narrow = ConfigOf(design, last);
  narrow.kv_warpgroups = 0;
  design.arms.push_back({"hopper_small:one_kv_warpgroup", narrow, "without",
                         std::string(sdpa::ToggleId(&sdpa::Config::kv_warpgroups)), last});
  PlantControls("hopper_small_control", last, &design);
  return design;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGNS_HOPPER_SMALL_H_
