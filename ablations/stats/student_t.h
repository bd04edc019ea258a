// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, for intervals over a handful of processes.
//
// Contract: accurate to 10 significant digits for df in [0.1, 1000], whole or not, and
// probabilities in [1e-12, 1] while t is under 1e300; df <= 0 gives NaN.
//
//   double t = StudentCritical(0.05, 2);   // 4.3027: two-sided 95%, 2 degrees

#pragma once

namespace warpledger::analysis {

// P(|T| > t) with `df` degrees of freedom, t >= 0.
double StudentTwoSidedTail(double t, double df);

// The t with P(|T| > t) = alpha, alpha in (0, 1].
double StudentCritical(double alpha, double df);

}  // namespace warpledger::analysis
