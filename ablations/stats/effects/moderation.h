// SPDX-License-Identifier: Apache-2.0
// Variances of many comparisons of one run, each from a few processes, that learn from each other.
//
// Model: the variance s^2 of a comparison, with d degrees of freedom, is that of normal values
// whose own variance is s0^2 d0 / chi-square(d0). s0^2 and d0 come from all comparisons by the
// moments of ln s^2, and each variance becomes (d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of
// freedom (Smyth, "Linear models and empirical Bayes methods", SAGMB 3, 2004). As limma does, no
// variance gets more degrees of freedom than all have together.
//
// Contract: fewer than kLeastToModerate come back as they are. A variance is never less than that
// of log-ratios of six digits, so that values that agree to the last one do not look exact.
//
//   const std::vector<VarianceEstimate> shared = Moderated({{1e-6, 4}, {3e-6, 4}, …});

#pragma once

#include <vector>

#include "absl/types/span.h"

namespace warpledger::analysis {

struct VarianceEstimate {
  double variance = 0;
  double df = 0;  // above 0
};

inline constexpr int kLeastToModerate = 10;

std::vector<VarianceEstimate> Moderated(absl::Span<const VarianceEstimate> estimates);

}  // namespace warpledger::analysis
