// SPDX-License-Identifier: Apache-2.0
// A straight line through measured points, and medians.
//
//   LineFit fit = *FitLine(units, cycles);  // fit.slope cycles per unit

#ifndef WARPLEDGER_MICRO_HARNESS_LINE_FIT_H_
#define WARPLEDGER_MICRO_HARNESS_LINE_FIT_H_

#include <vector>

#include "absl/status/statusor.h"

namespace warpledger::harness {

struct LineFit {
  double slope = 0;
  double intercept = 0;
  double r2 = 0;  // share of y's variance that the line explains; 1 for constant y
};

// Least squares of y over x. InvalidArgument with fewer than two distinct x, or
// when the lengths differ.
absl::StatusOr<LineFit> FitLine(const std::vector<double>& x, const std::vector<double>& y);

// The middle value, or the mean of the two middle ones; 0 of nothing.
double Median(std::vector<double> values);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_LINE_FIT_H_
