// SPDX-License-Identifier: Apache-2.0
// The level of the intervals of a declared family of which a reader picks those that decided.
//
// Contract: with R members of m decided, each at the level R alpha / m, the expected share of
// intervals that miss among those that decided is at most alpha (Benjamini and Yekutieli, "False
// discovery rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005).
// R is the largest for which it holds (Benjamini and Hochberg's step-up). All members, decided or
// not, share the level; without any decision it is that of R = 1.
//
//   const double alpha = FalseCoverageLevel({0.001, 0.2, 0.03}, 0.05);   // 2 of 3: 0.0333

#pragma once

#include "absl/types/span.h"

namespace warpledger::analysis {

// `p_values`: the level from which on each member decides. At least one.
double FalseCoverageLevel(absl::Span<const double> p_values, double alpha);

}  // namespace warpledger::analysis
