// SPDX-License-Identifier: Apache-2.0
// Hardware counters of one profile, by the names that people use.
//
// Contract: every reader is empty where the profile lacks the counter. The counters'
// own names and what they count: Nsight Compute's documentation, "Metrics Reference".
//
//   std::optional<double> busy = Tensor(profile);  // percent of the tensor cores' peak

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/summary/profile.h"
#include "absl/types/span.h"

namespace warpledger::report {

using ablations::Profile;

// Percent of the unit's peak while the SM has work.
std::optional<double> Tensor(const Profile& profile);
std::optional<double> Mufu(const Profile& profile);
std::optional<double> Fma(const Profile& profile);
std::optional<double> Issue(const Profile& profile);
std::optional<double> L1(const Profile& profile);
std::optional<double> Occupancy(const Profile& profile);
// Percent of the peak over the whole launch.
std::optional<double> L2(const Profile& profile);
std::optional<double> Dram(const Profile& profile);
// Percent of the launch in which the average SM had a warp.
std::optional<double> Busy(const Profile& profile);
// Percent of the passes through shared memory that conflicts add.
std::optional<double> ConflictShare(const Profile& profile);

// Counts over the launch.
std::optional<double> L2Bytes(const Profile& profile);
std::optional<double> DramBytes(const Profile& profile);
std::optional<double> SharedLoadWavefronts(const Profile& profile);

// A counter that the registry's claims may name, or that is looked at beside them.
struct Counter {
  std::string_view id;       // as a CounterClaim of the registry names it
  std::string_view claimed;  // in words, for a claim
  std::string_view besides;  // as what moved besides; empty: not looked at there
  std::optional<double> (*read)(const Profile& profile);
};
absl::Span<const Counter> Counters();
// Null where none is called so.
const Counter* FindCounter(std::string_view id);

// Warp-cycles per instruction issued, all reasons and the issue itself.
std::optional<double> CyclesPerInstruction(const Profile& profile);
// One reason for which warps waited.
struct Stall {
  std::string reason;
  double share = 0;  // of all warp-cycles, those that issue included
};
// Largest first. "selected" is no stall: it is the warp that issues.
std::vector<Stall> Stalls(const Profile& profile);

// a / b; empty where either is or b is 0.
std::optional<double> Ratio(std::optional<double> a, std::optional<double> b);

}  // namespace warpledger::report
