// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/distributions.h"

#include <cmath>
#include <limits>

namespace warpledger::analysis {

double StudentTwoSidedTail(double t, double df) {
  if (!(df > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(t)) return 0;
  return RegularisedBeta(0.5 * df, 0.5, df / (df + t * t));
}

double StudentCritical(double alpha, double df) {
  if (!(df > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (alpha >= 1) return 0;
  double low = 0;
  double high = 1;
  while (StudentTwoSidedTail(high, df) > alpha && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (StudentTwoSidedTail(middle, df) > alpha ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

namespace {

// The continued fraction of the incomplete beta function (Abramowitz and
// Stegun 26.5.8), summed by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto guard = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / guard(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

}  // namespace

double RegularisedBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast only on this side of the mean.
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

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
