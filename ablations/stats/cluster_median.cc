// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/cluster_median.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "ablations/stats/quantile.h"
#include "ablations/stats/random.h"
#include "ablations/stats/student_t.h"

namespace warpledger::analysis {
namespace {

// Medians of resamples of whole clusters, or of one cluster's values, sorted.
//
// Values are ranked once; a resample only counts how often each rank was drawn,
// and its median is found by walking the counts. That is about ten times faster
// than copying values and selecting, which matters at 20000 resamples per figure.
std::vector<double> ResampledMedians(const std::vector<std::vector<double>>& clusters,
                                     const BootstrapOptions& options) {
  std::vector<double> sorted;
  for (const std::vector<double>& cluster : clusters) {
    sorted.insert(sorted.end(), cluster.begin(), cluster.end());
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::vector<uint32_t>> ranks(clusters.size());
  for (size_t c = 0; c < clusters.size(); ++c) {
    for (const double value : clusters[c]) {
      // Equal values share a rank: which of them is drawn can't be told apart.
      ranks[c].push_back(static_cast<uint32_t>(
          std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin()));
    }
  }

  const bool inside = options.inside_clusters || ranks.size() == 1;
  Random random(options.seed);
  std::vector<uint32_t> drawn(sorted.size());
  std::vector<double> medians;
  medians.reserve(static_cast<size_t>(options.resamples));
  for (int i = 0; i < options.resamples; ++i) {
    std::fill(drawn.begin(), drawn.end(), 0);
    size_t total = 0;
    for (size_t slot = 0; slot < ranks.size(); ++slot) {
      const std::vector<uint32_t>& cluster =
          ranks[random.Below(static_cast<uint32_t>(ranks.size()))];
      const uint32_t size = static_cast<uint32_t>(cluster.size());
      for (uint32_t k = 0; k < size; ++k) ++drawn[cluster[inside ? random.Below(size) : k]];
      total += size;
    }
    // The order statistics (total - 1) / 2 and total / 2, from 0.
    size_t rank = 0;
    size_t seen = drawn[0];
    while (seen <= (total - 1) / 2) seen += drawn[++rank];
    const double lower = sorted[rank];
    while (seen <= total / 2) seen += drawn[++rank];
    medians.push_back(lower + 0.5 * (sorted[rank] - lower));
  }
  std::sort(medians.begin(), medians.end());
  return medians;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The standard error of the mean of `values`, of which there are two at least.
double StandardError(const std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

ClusterMedian::ClusterMedian(std::vector<std::vector<double>> clusters,
                             const BootstrapOptions& options) {
  clusters.erase(std::remove_if(clusters.begin(), clusters.end(),
                                [](const std::vector<double>& c) { return c.empty(); }),
                 clusters.end());
  std::vector<double> pooled;
  for (const std::vector<double>& cluster : clusters) {
    pooled.insert(pooled.end(), cluster.begin(), cluster.end());
    cluster_medians_.push_back(Median(cluster));
  }
  n_values_ = static_cast<int>(pooled.size());
  estimate_ = Median(std::move(pooled));
  if (n_values_ > 0) resamples_ = ResampledMedians(clusters, options);
}

Interval ClusterMedian::Bootstrap(double confidence) const {
  const double tail = 0.5 * (1 - confidence);
  return {SortedQuantile(resamples_, tail), SortedQuantile(resamples_, 1 - tail)};
}

Interval ClusterMedian::Student(double confidence) const {
  if (n_clusters() < 2) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {-kInfinity, kInfinity};
  }
  const double half_width =
      StudentCritical(1 - confidence, n_clusters() - 1) * StandardError(cluster_medians_);
  const double mean = Mean(cluster_medians_);
  return {mean - half_width, mean + half_width};
}

Interval ClusterMedian::Envelope(double confidence) const {
  Interval envelope = Bootstrap(confidence);
  if (n_clusters() >= 2) {
    const Interval student = Student(confidence);
    envelope.low = std::min(envelope.low, student.low);
    envelope.high = std::max(envelope.high, student.high);
  }
  return {std::min(envelope.low, estimate_), std::max(envelope.high, estimate_)};
}

}  // namespace warpledger::analysis
