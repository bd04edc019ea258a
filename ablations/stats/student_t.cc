// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/student_t.h"

#include <cmath>
#include <limits>

#include "ablations/stats/incomplete_beta.h"

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

}  // namespace warpledger::analysis
