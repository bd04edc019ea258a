// SPDX-License-Identifier: Apache-2.0
// An effect that is known with an error: the intervals and tests of Student's t around it.
//
// Units: log-ratios. An infinite error says nothing: p-values are 1.
//
//   const Effect effect = {.log_ratio = 0.05, .error = 0.004, .df = 7};
//   const Interval at_95_percent = effect.At(0.95);

#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace warpledger::analysis {

struct Interval {
  double low = 0;
  double high = 0;
};

struct Effect {
  static constexpr double kPower = 0.80;  // of the least effect that is found

  double log_ratio = 0;
  double error = 0;  // standard error
  double df = 0;     // degrees of freedom of the error

  Interval At(double confidence) const;  // two-sided
  // The same of the ratio, within what a double can hold.
  Interval RatioAt(double confidence) const;
  // Two-sided, of "the effect is null".
  double PValue(double null) const;
  // The size from which on an effect of this error excludes 0 at level `alpha` with kPower.
  double Least(double alpha) const;
  // Two one-sided tests at `alpha` each: the 1 - 2 alpha interval lies inside
  // [1 / (1 + delta), 1 + delta].
  bool IsEquivalent(double alpha, double delta) const;
  // The level from which on the effect is told from 0, or is equivalent by these two tests.
  double DecisionPValue(double delta) const;
};

// Variances of many comparisons of one run, each from a few processes, that learn from each other.
//
// Model: the variance s^2 of a comparison, with d degrees of freedom, is that of normal values
// whose own variance is s0^2 d0 / chi-square(d0). s0^2 and d0 come from all comparisons by the
// moments of ln s^2, and each variance becomes (d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of
// freedom (Smyth, "Linear models and empirical Bayes methods", SAGMB 3, 2004). As limma does, no
// variance gets more degrees of freedom than all have together.
//
// Comparisons that share a side scatter together: two that share a base have log-ratios of the
// correlation 1/2 where arms scatter alike, and so variances of the correlation 1/4. All together
// then have fewer degrees of freedom than their sum: those of their weighted mean, by its variance.
// K comparisons with one base and d degrees of freedom each have 4 K d / (K + 3), less than 4 d.
//
// Contract: fewer than kLeastToModerate come back as they are. A variance is never less than that
// of log-ratios of six digits, so that values that agree to the last one do not look exact.
//
//   const std::vector<VarianceEstimate> shared = Moderated({{1e-6, 4}, {3e-6, 4}, …});

struct VarianceEstimate {
  double variance = 0;
  double df = 0;  // above 0
};

inline constexpr int kLeastToModerate = 10;

// What the variances of a run share.
struct VariancePrior {
  double variance = 0;  // s0^2
  double df = 0;        // d0; 0: each stands alone
  double all_df = 0;    // of all together
};

// What a comparison compares, by numbers of the caller's.
using Sides = std::pair<int, int>;

// `sides`: of each estimate; none at all where no two share one.
double AllDegreesOfFreedom(absl::Span<const VarianceEstimate> estimates,
                           absl::Span<const Sides> sides);
VariancePrior PriorOf(absl::Span<const VarianceEstimate> estimates,
                      absl::Span<const Sides> sides = {});
VarianceEstimate Moderate(const VarianceEstimate& estimate, const VariancePrior& prior);
// Each by what they share.
std::vector<VarianceEstimate> Moderated(absl::Span<const VarianceEstimate> estimates,
                                        absl::Span<const Sides> sides = {});

// Degrees of freedom of the sum of independent variances: (sum v)^2 / sum(v^2 / df)
// (Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics
// Bulletin 2, 1946).
double SumDegreesOfFreedom(absl::Span<const VarianceEstimate> terms);

}  // namespace warpledger::analysis
