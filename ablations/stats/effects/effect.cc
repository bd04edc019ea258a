// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/effect.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ablations/stats/distributions.h"

namespace warpledger::analysis {

Interval Effect::At(double confidence) const {
  const double half_width = StudentCritical(1 - confidence, df) * error;
  return {log_ratio - half_width, log_ratio + half_width};
}

Interval Effect::RatioAt(double confidence) const {
  constexpr double kMost = 700;
  const Interval interval = At(confidence);
  return {std::exp(std::max(interval.low, -kMost)), std::exp(std::min(interval.high, kMost))};
}

double Effect::PValue(double null) const {
  if (std::isinf(error)) return 1;
  return StudentTwoSidedTail(std::fabs(log_ratio - null) / error, df);
}

double Effect::Least(double alpha) const {
  // The half-width is t(alpha) errors; power adds t(power) more.
  return error * (StudentCritical(alpha, df) + StudentCritical(2 * (1 - kPower), df));
}

bool Effect::IsEquivalent(double alpha, double delta) const {
  const Interval interval = At(1 - 2 * alpha);
  return interval.low >= -std::log1p(delta) && interval.high <= std::log1p(delta);
}

double Effect::DecisionPValue(double delta) const {
  const double different = PValue(0);
  const double room = std::log1p(delta) - std::fabs(log_ratio);
  if (std::isinf(error) || room <= 0) return different;
  return std::min(different, StudentTwoSidedTail(room / error, df) / 2);
}

namespace {

constexpr double kLeastVariance = 1e-10;

// The first three derivatives of ln Gamma(x), x > 0: recurrence up to 10, then the asymptotic
// series (Abramowitz and Stegun, 6.3.18, 6.4.12 and 6.4.13).
double Digamma(double x) {
  double value = 0;
  for (; x < 10; ++x) value -= 1 / x;
  const double y = 1 / (x * x);
  return value + std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

double Trigamma(double x) {
  double value = 0;
  for (; x < 10; ++x) value += 1 / (x * x);
  const double y = 1 / (x * x);
  return value + 1 / x + y / 2 + y / x * (1.0 / 6 - y * (1.0 / 30 - y / 42));
}

double Tetragamma(double x) {
  double value = 0;
  for (; x < 10; ++x) value -= 2 / (x * x * x);
  const double y = 1 / (x * x);
  return value - y - y / x - y * y * (0.5 - y * (1.0 / 6 - y / 6));
}

// The x with Trigamma(x) = y, by Newton's method on 1 / Trigamma, which is convex.
double InverseTrigamma(double y) {
  double x = 0.5 + 1 / y;
  for (int i = 0; i < 50; ++i) {
    const double value = Trigamma(x);
    const double step = value * (1 - value / y) / Tetragamma(x);
    x += step;
    if (std::fabs(step) < 1e-12 * x) break;
  }
  return x;
}

}  // namespace

double AllDegreesOfFreedom(absl::Span<const VarianceEstimate> estimates,
                           absl::Span<const Sides> sides) {
  double sum = 0;
  for (const VarianceEstimate& each : estimates) sum += each.df;
  // The variance of the sum of d s^2, in units of that of one degree of freedom. Two estimates have
  // the processes of the one that has fewer in common.
  double squares = sum;
  for (size_t i = 0; i < sides.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const auto& [a, b] = sides[i];
      const auto& [c, d] = sides[k];
      const int shared = (a == c || a == d ? 1 : 0) + (b == c || b == d ? 1 : 0);
      const double correlation = shared == 2 ? 1 : 0.25 * shared;
      squares += 2 * correlation * std::min(estimates[i].df, estimates[k].df);
    }
  }
  return sum * sum / squares;
}

VariancePrior PriorOf(absl::Span<const VarianceEstimate> estimates, absl::Span<const Sides> sides) {
  if (std::ssize(estimates) < kLeastToModerate) return {};
  const double n = static_cast<double>(estimates.size());
  double mean = 0;  // of ln s^2, less what its own degrees of freedom put there
  const double all_df = AllDegreesOfFreedom(estimates, sides);
  double expected = 0;  // variance of ln s^2 from its own degrees of freedom
  std::vector<double> logs;
  for (const VarianceEstimate& each : estimates) {
    const double half = each.df / 2;
    logs.push_back(std::log(std::max(each.variance, kLeastVariance)) - Digamma(half) +
                   std::log(half));
    mean += logs.back() / n;
    expected += Trigamma(half) / n;
  }
  double variance = 0;
  for (const double value : logs) variance += (value - mean) * (value - mean) / (n - 1);
  const double excess = variance - expected;
  double prior_df = all_df;  // no more scatter than chance: one variance for all
  double prior_log = mean;
  if (excess > 0) {
    const double half = InverseTrigamma(excess);
    prior_log = mean + Digamma(half) - std::log(half);
    prior_df = std::min(2 * half, all_df);
  }
  return {std::exp(prior_log), prior_df, all_df};
}

VarianceEstimate Moderate(const VarianceEstimate& estimate, const VariancePrior& prior) {
  const double own = std::max(estimate.variance, kLeastVariance);
  if (prior.df == 0) return {own, estimate.df};
  const double df = prior.df + estimate.df;
  return {.variance = (prior.df * prior.variance + estimate.df * own) / df,
          .df = std::min(df, std::max(prior.all_df, estimate.df))};
}

std::vector<VarianceEstimate> Moderated(absl::Span<const VarianceEstimate> estimates,
                                        absl::Span<const Sides> sides) {
  const VariancePrior prior = PriorOf(estimates, sides);
  std::vector<VarianceEstimate> moderated;
  for (const VarianceEstimate& each : estimates) moderated.push_back(Moderate(each, prior));
  return moderated;
}

double SumDegreesOfFreedom(absl::Span<const VarianceEstimate> terms) {
  double sum = 0;
  double squares = 0;
  for (const VarianceEstimate& term : terms) {
    sum += term.variance;
    squares += term.variance * term.variance / term.df;
  }
  return sum * sum / squares;
}

}  // namespace warpledger::analysis
