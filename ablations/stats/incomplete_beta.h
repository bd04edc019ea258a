// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete beta function, which the t and the binomial
// distribution are made of.

#pragma once

namespace warpledger::analysis {

// I_x(a, b) for a, b > 0; 0 below x = 0, 1 above x = 1.
double RegularisedBeta(double a, double b, double x);

}  // namespace warpledger::analysis
