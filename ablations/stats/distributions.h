// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, for intervals over a handful of processes.
//
// Contract: accurate to 10 significant digits for df in [0.1, 1000], whole or not, and
// probabilities in [1e-12, 1] while t is under 1e300; df <= 0 gives NaN.
//
//   double t = StudentCritical(0.05, 2);   // 4.3027: two-sided 95%, 2 degrees

#pragma once

#include "ablations/stats/effects/effect.h"

namespace warpledger::analysis {

// P(|T| > t) with `df` degrees of freedom, t >= 0.
double StudentTwoSidedTail(double t, double df);

// The t with P(|T| > t) = alpha, alpha in (0, 1].
double StudentCritical(double alpha, double df);

// The regularised incomplete beta function, which the t and the binomial
// distribution are made of: I_x(a, b) for a, b > 0; 0 below x = 0, 1 above x = 1.
double RegularisedBeta(double a, double b, double x);

// An interval for a share of trials.
//
// Contract: Clopper and Pearson's (1934), exact in that it covers the truth with
// at least `confidence` whatever the share; for a one-sided bound at level c ask
// for the two-sided interval at 2c - 1. `trials` of 0 gives [0, 1].
//
//   Interval found = ClopperPearson(98, 100, 0.95);
//   double chance = BinomialAtMost(193, 210, 0.95);  // of 193 or fewer

// 0 <= successes <= trials.
Interval ClopperPearson(int successes, int trials, double confidence);

// The probability of at most `successes` in independent trials that succeed with `rate`.
double BinomialAtMost(int successes, int trials, double rate);

}  // namespace warpledger::analysis
