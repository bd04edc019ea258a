// SPDX-License-Identifier: Apache-2.0
// Order statistics.
//
// Contract: quantiles are of type 7 in Hyndman and Fan's list (1996), the one of
// R and NumPy: linear between the order statistics around (n - 1) p. The median
// of an even number of values is the mean of the middle two. Values are finite
// and there is at least one; an empty span gives NaN.
//
//   double p50_us = Median(times_us);
//   double low = SortedQuantile(sorted_resamples, 0.025);

#pragma once

#include <vector>

#include "absl/types/span.h"

namespace warpledger::analysis {

// `sorted` ascending; `p` in [0, 1], clamped.
double SortedQuantile(absl::Span<const double> sorted, double p);

double Median(std::vector<double> values);

}  // namespace warpledger::analysis
