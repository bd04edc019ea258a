// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/variance_split.h"

#include <algorithm>
#include <cmath>

#include "ablations/stats/quantile.h"

namespace warpledger::analysis {

std::optional<VarianceSplit> SplitVariance(const std::vector<std::vector<double>>& by_process) {
  std::vector<double> medians;
  std::vector<double> distances;
  double inverse_sizes = 0;
  for (const std::vector<double>& values : by_process) {
    if (values.empty()) continue;
    const double median = Median(values);
    medians.push_back(median);
    inverse_sizes += 1.0 / static_cast<double>(values.size());
    for (const double value : values) distances.push_back(std::fabs(value - median));
  }
  if (medians.size() < 2) return std::nullopt;
  const double n = static_cast<double>(medians.size());
  constexpr double kMadToSd = 1.4826;
  VarianceSplit split;
  split.within = kMadToSd * Median(std::move(distances));
  double mean = 0;
  for (const double median : medians) mean += median / n;
  double variance = 0;
  for (const double median : medians) variance += (median - mean) * (median - mean) / (n - 1);
  const double from_within = M_PI / 2 * split.within * split.within * inverse_sizes / n;
  split.between = std::sqrt(std::max(0.0, variance - from_within));
  return split;
}

}  // namespace warpledger::analysis
