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

#include <optional>
#include <vector>

#include "ablations/stats/effects/effect.h"
#include "absl/types/span.h"

namespace warpledger::analysis {

// `sorted` ascending; `p` in [0, 1], clamped.
double SortedQuantile(absl::Span<const double> sorted, double p);

double Median(std::vector<double> values);

// How much values differ within a process, and how much processes differ beyond that.
//
// Contract: robust, because samples have outliers. `within` is 1.4826 times the
// median distance of a value from its process's median: the standard deviation
// where the noise is normal. The median of m such values has variance
// (pi / 2) within^2 / m; `between` squared is what the variance of the processes'
// medians has above that, and 0 where it has nothing. With five processes
// `between` is itself known to within a factor of about two only.
//
//   std::optional<VarianceSplit> split = SplitVariance(log_ratios_by_process);

struct VarianceSplit {
  double within = 0;  // standard deviations
  double between = 0;
};

// What all processes say together: the mean of the processes' own medians.
struct ProcessMedians {
  double mean = 0;
  double variance = 0;  // between the processes' medians; 0 with one process
  int processes = 0;    // that have values

  // Student's t on the processes' medians (Ibragimov and Müller, "t-statistic based correlation and
  // heterogeneity robust inference", JBES 28, 2010), around their mean. Its error is infinite with
  // one process.
  Effect Alone() const;
};

// At least one value in all.
ProcessMedians MediansOf(const std::vector<std::vector<double>>& by_process);

// nullopt with fewer than two processes that have values.
std::optional<VarianceSplit> SplitVariance(const std::vector<std::vector<double>>& by_process);

}  // namespace warpledger::analysis
