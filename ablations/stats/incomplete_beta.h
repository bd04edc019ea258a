// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete beta function, which the t and the binomial
// distribution are made of.

#ifndef WARPLEDGER_ABLATIONS_STATS_INCOMPLETE_BETA_H_
#define WARPLEDGER_ABLATIONS_STATS_INCOMPLETE_BETA_H_

namespace warpledger::analysis {

// I_x(a, b) for a, b > 0; 0 below x = 0, 1 above x = 1.
double RegularisedBeta(double a, double b, double x);

}  // namespace warpledger::analysis

#endif  // WARPLEDGER_ABLATIONS_STATS_INCOMPLETE_BETA_H_
