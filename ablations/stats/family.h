// SPDX-License-Identifier: Apache-2.0
// Holm's step-down correction (1979) over a declared family.
//
// Contract: members are tested from the smallest p-value up; the member at place
// i (from 0) of m is tested at alpha / (m - i). The first that fails stops the
// walk, and it and all after it keep the level of that place. Ties keep the
// order of the input. Each member's interval is then drawn at 1 - its level, so
// that "the interval excludes 1" and "Holm rejects" agree.
//
// Known limit: the family-wise level holds for the claim "the ratio is not 1".
// Bounds of late members are narrower than simultaneous ones would be.
//
//   std::vector<HolmLevel> levels = Holm({0.001, 0.2, 0.03}, 0.05);
//   levels[0].alpha;   // 0.05 / 3

#pragma once

#include <vector>

#include "absl/types/span.h"

namespace warpledger::analysis {

struct HolmLevel {
  double alpha = 0;  // the level at which this member is judged
  bool rejected = false;
};

// In the order of `p_values`.
std::vector<HolmLevel> Holm(absl::Span<const double> p_values, double alpha);

// The level of the intervals of a declared family of which a reader picks those that decided.
//
// Contract: with R members of m decided, each at the level R alpha / m, the expected share of
// intervals that miss among those that decided is at most alpha (Benjamini and Yekutieli, "False
// discovery rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005).
// R is the largest for which it holds (Benjamini and Hochberg's step-up). All members, decided or
// not, share the level; without any decision it is that of R = 1.
//
//   const double alpha = FalseCoverageLevel({0.001, 0.2, 0.03}, 0.05);   // 2 of 3: 0.0333

// `p_values`: the level from which on each member decides. At least one.
double FalseCoverageLevel(absl::Span<const double> p_values, double alpha);

}  // namespace warpledger::analysis
