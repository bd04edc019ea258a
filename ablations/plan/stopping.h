// SPDX-License-Identifier: Apache-2.0
// Sequential stopping: a run may end on a shape before all its processes ran, once
// every interval there is narrow enough.
//
// Contract
// - The looks are planned beforehand, after whole processes, and stand in run.json
//   with the share of alpha that each may spend. At a look every claim on the shape
//   (a step or a `without` against its base) has its interval at 1 - alpha * share;
//   the shape is done when all half-widths are within the goal. A claim without
//   pairs, as of a broken arm, asks for nothing.
// - The verdict is drawn at the level of the look at which the shape ended, from
//   the samples up to that look and no others. An interval misses its ratio at look
//   k with probability alpha * share_k at most, and shares add up to 1, so by the
//   union bound the interval that is reported misses with at most alpha, whatever
//   made the run end when it did. Likewise p / share is a p-value, so the
//   level of a claim's family holds on these.
// - A pure function of run.json and the samples: a resumed run and a judge come to
//   the same answer as the run did.
//
// Why not Lan and DeMets' spending functions: they assume the joint distribution of
// the looks' statistics, which for an envelope of a bootstrap and Student's t on a
// handful of processes nobody knows. The union bound costs little at two or three
// looks. The last look has half of alpha: most runs end there.
//
//   absl::StatusOr<StoppingRule> rule = ParseStopping("ci:1%", 5);   // looks after 3 and 5
//   StoppingState state = StateOf(run, samples, "mission_b");
//   if (state.stopped) …                                             // after state.processes

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// The first look comes after so many processes: with two, Student's t has one
// degree of freedom.
inline constexpr int kFirstLook = 3;

// After 3 processes, then after each second one, and after the last: {3, 5, 8} for 8.
// One look, so no early end, for fewer than kFirstLook + 2 processes.
std::vector<int> PlannedLooks(int processes);
// Half of alpha for the last of `looks`, the rest in equal parts for those before.
std::vector<double> AlphaShares(int looks);

// "off", or "ci:1%": end on a shape when the half-width of every interval there is
// at most 1% of its ratio. InvalidArgument for anything else, and for so few
// processes that there is no look before the last.
absl::StatusOr<std::optional<StoppingRule>> ParseStopping(std::string_view text, int processes);

struct StoppingState {
  int processes = 0;  // whose samples count: those up to the look that was reached
  double alpha_share = 1;
  int look = -1;                // reached, from 0; -1: none yet
  bool stopped = false;         // the goal was met at it, before the last look
  double worst_half_width = 0;  // at it; 0 where no claim has pairs
};

// Of a run with a rule, on one shape. A process counts when all its blocks are there.
StoppingState StateOf(const RunInfo& run, const std::vector<Sample>& samples,
                      const std::string& shape);

}  // namespace warpledger::ablations
