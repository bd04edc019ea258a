// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/proportion.h"

#include "ablations/stats/incomplete_beta.h"

namespace warpledger::analysis {
namespace {

// The x with I_x(a, b) = p.
double BetaQuantile(double a, double b, double p) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (RegularisedBeta(a, b, middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

Interval ClopperPearson(int successes, int trials, double confidence) {
  const double tail = 0.5 * (1 - confidence);
  const int failures = trials - successes;
  Interval interval = {0, 1};
  if (successes > 0) interval.low = BetaQuantile(successes, failures + 1, tail);
  if (failures > 0) interval.high = BetaQuantile(successes + 1, failures, 1 - tail);
  return interval;
}

double BinomialAtMost(int successes, int trials, double rate) {
  if (successes >= trials) return 1;
  return RegularisedBeta(trials - successes, successes + 1, 1 - rate);
}

}  // namespace warpledger::analysis
