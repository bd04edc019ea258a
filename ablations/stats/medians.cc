// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/medians.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace warpledger::analysis {

double SortedQuantile(absl::Span<const double> sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return SortedQuantile(values, 0.5);
}

namespace {

double Mean(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return mean;
}

// Of two values at least.
double SampleVariance(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = Mean(values);
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / (n - 1);
  return variance;
}

}  // namespace

Effect ProcessMedians::Alone() const {
  if (processes < 2) return {mean, std::numeric_limits<double>::infinity(), 1};
  return {mean, std::sqrt(variance / processes), processes - 1.0};
}

ProcessMedians MediansOf(const std::vector<std::vector<double>>& by_process) {
  std::vector<double> medians;
  for (const std::vector<double>& values : by_process) {
    if (values.empty()) continue;
    medians.push_back(Median(values));
  }
  return {.mean = Mean(medians),
          .variance = medians.size() < 2 ? 0 : SampleVariance(medians),
          .processes = static_cast<int>(medians.size())};
}

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
  const double from_within = M_PI / 2 * split.within * split.within * inverse_sizes / n;
  split.between = std::sqrt(std::max(0.0, SampleVariance(medians) - from_within));
  return split;
}

}  // namespace warpledger::analysis
