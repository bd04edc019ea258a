// SPDX-License-Identifier: Apache-2.0
// Pairs of samples that were taken in the same block of the same process.
//
// Contract: what drifts from block to block (clock, temperature) is common to
// both halves of a pair and cancels in the ratio. A sample without a partner is
// left out. A log-ratio is ln(time(base) / time(candidate)): above 0 is faster.
//
//   std::vector<Pair> pairs = PairUp(base, candidate);
//   std::vector<std::vector<double>> log_ratios = LogRatiosByProcess(pairs);

#pragma once

#include <vector>

#include "absl/types/span.h"

namespace warpledger::analysis {

// One time of one arm on one shape. (process, block) is unique in a list.
struct Timing {
  int process = 0;
  int block = 0;
  double us = 0;
  double sm_mhz = 0;          // 0: not read
  bool throttled = false;     // by anything but the power limit
  bool power_capped = false;  // by the power limit
};

struct Pair {
  Timing base;
  Timing candidate;
};

// Ordered by process, then block.
std::vector<Pair> PairUp(absl::Span<const Timing> base, absl::Span<const Timing> candidate);

// One inner list per process that has pairs: ln(us of the base / us of the candidate).
std::vector<std::vector<double>> LogRatiosByProcess(absl::Span<const Pair> pairs);
// The same of SM cycles, which are us x sm_mhz. Both clocks of all pairs were read.
std::vector<std::vector<double>> LogCycleRatiosByProcess(absl::Span<const Pair> pairs);

// One inner list per process: ln(us).
std::vector<std::vector<double>> LogTimesByProcess(absl::Span<const Timing> timings);

}  // namespace warpledger::analysis
