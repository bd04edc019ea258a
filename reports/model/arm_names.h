// SPDX-License-Identifier: Apache-2.0
// Short names of arms: a base of their design, and what is changed from there.
//
// A record's own name tells how its design came to an arm, step by step:
// "hopper_end:tma_store+wgmma_tile=1+ping_pong=0". Pages say what differs:
// "hopper_end{tma_store, wgmma_tile=powers_of_two, ping_pong=off}".
//
// Contract: a pure function of the summary and the registry. Of the design's bases it is the one
// from which the fewest toggles differ; toggles are in the registry's order. An arm that today's
// registry can't read keeps its name.
//
//   ArmName(summary, verdict.candidate)
//   for (const ArmAlias& alias : ArmAliases(summary)) … alias.record, alias.name …

#pragma once

#include <string>
#include <vector>

#include "reports/model/summary.h"

namespace warpledger::report {

std::string ArmName(const Summary& summary, const std::string& arm);

struct ArmAlias {
  std::string record;  // as run.json spells it
  std::string name;
};
// Of the arms that are not called so already, in the record's order; controls are left out.
std::vector<ArmAlias> ArmAliases(const Summary& summary);

}  // namespace warpledger::report
