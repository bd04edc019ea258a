// SPDX-License-Identifier: Apache-2.0
// An interval for a share of trials.
//
// Contract: Clopper and Pearson's (1934), exact in that it covers the truth with
// at least `confidence` whatever the share; for a one-sided bound at level c ask
// for the two-sided interval at 2c - 1. `trials` of 0 gives [0, 1].
//
//   Interval found = ClopperPearson(98, 100, 0.95);
//   double chance = BinomialAtMost(193, 210, 0.95);  // of 193 or fewer

#pragma once

#include "ablations/stats/cluster_median.h"

namespace warpledger::analysis {

// 0 <= successes <= trials.
Interval ClopperPearson(int successes, int trials, double confidence);

// The probability of at most `successes` in independent trials that succeed with `rate`.
double BinomialAtMost(int successes, int trials, double rate);

}  // namespace warpledger::analysis
