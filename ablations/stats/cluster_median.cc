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

// A resample only counts how often each rank of the sorted values was drawn, and its median is
// found by walking these counts: ten times faster than copying values and selecting.
class RankCounts {
 public:
  explicit RankCounts(const std::vector<std::vector<double>>& clusters) {
    for (const std::vector<double>& cluster : clusters) {
      sorted_.insert(sorted_.end(), cluster.begin(), cluster.end());
    }
    std::sort(sorted_.begin(), sorted_.end());
    for (const std::vector<double>& cluster : clusters) {
      std::vector<uint32_t>& ranks = ranks_.emplace_back();
      for (const double value : cluster) {
        // Equal values share a rank: which of them is drawn can't be told apart.
        ranks.push_back(static_cast<uint32_t>(
            std::lower_bound(sorted_.begin(), sorted_.end(), value) - sorted_.begin()));
      }
    }
    Clear();
  }

  void Clear() {
    drawn_.assign(sorted_.size(), 0);
    total_ = 0;
  }
  // All values of a cluster, `times` times.
  void DrawCluster(size_t cluster, uint32_t times) {
    for (const uint32_t rank : ranks_[cluster]) drawn_[rank] += times;
    total_ += times * ranks_[cluster].size();
  }
  // As many values of a cluster as it has, with replacement.
  void DrawInside(size_t cluster, Random& random) {
    const std::vector<uint32_t>& ranks = ranks_[cluster];
    const auto size = static_cast<uint32_t>(ranks.size());
    for (uint32_t k = 0; k < size; ++k) ++drawn_[ranks[random.Below(size)]];
    total_ += size;
  }
  double Median() const {
    // The order statistics (total - 1) / 2 and total / 2, from 0.
    size_t rank = 0;
    size_t seen = drawn_[0];
    while (seen <= (total_ - 1) / 2) seen += drawn_[++rank];
    const double lower = sorted_[rank];
    while (seen <= total_ / 2) seen += drawn_[++rank];
    return lower + 0.5 * (sorted_[rank] - lower);
  }

 private:
  std::vector<double> sorted_;
  std::vector<std::vector<uint32_t>> ranks_;  // by cluster
  std::vector<uint32_t> drawn_;               // by rank
  size_t total_ = 0;
};

// With at most this many clusters, resamples of whole clusters repeat so often (five clusters have
// 126 different ones) that each different one's median is computed once.
constexpr uint32_t kMostClustersToCount = 6;

// Medians of resamples of whole clusters, sorted.
std::vector<double> MediansOfWholeClusters(RankCounts& counts, uint32_t clusters, int resamples,
                                           Random& random) {
  // A resample's key has how often each cluster was drawn as its digits.
  const uint32_t base = clusters + 1;
  std::vector<uint32_t> digit(clusters, 1);
  for (uint32_t c = 1; c < clusters; ++c) digit[c] = digit[c - 1] * base;
  std::vector<int> times_drawn(static_cast<size_t>(digit.back()) * base);
  for (int i = 0; i < resamples; ++i) {
    uint32_t key = 0;
    for (uint32_t slot = 0; slot < clusters; ++slot) key += digit[random.Below(clusters)];
    ++times_drawn[key];
  }
  std::vector<std::pair<double, int>> different;
  for (uint32_t key = 0; key < times_drawn.size(); ++key) {
    if (times_drawn[key] == 0) continue;
    counts.Clear();
    for (uint32_t c = 0; c < clusters; ++c) counts.DrawCluster(c, key / digit[c] % base);
    different.emplace_back(counts.Median(), times_drawn[key]);
  }
  std::sort(different.begin(), different.end());
  std::vector<double> medians;
  medians.reserve(static_cast<size_t>(resamples));
  for (const auto& [median, times] : different) {
    medians.insert(medians.end(), static_cast<size_t>(times), median);
  }
  return medians;
}

// Medians of resamples of whole clusters, or of values inside them, sorted.
std::vector<double> ResampledMedians(const std::vector<std::vector<double>>& clusters,
                                     const BootstrapOptions& options) {
  RankCounts counts(clusters);
  Random random(options.seed);
  const auto n_clusters = static_cast<uint32_t>(clusters.size());
  const bool inside = options.inside_clusters || n_clusters == 1;
  if (!inside && n_clusters <= kMostClustersToCount) {
    return MediansOfWholeClusters(counts, n_clusters, options.resamples, random);
  }
  std::vector<double> medians;
  medians.reserve(static_cast<size_t>(options.resamples));
  for (int i = 0; i < options.resamples; ++i) {
    counts.Clear();
    for (uint32_t slot = 0; slot < n_clusters; ++slot) {
      const uint32_t cluster = random.Below(n_clusters);
      if (inside) {
        counts.DrawInside(cluster, random);
      } else {
        counts.DrawCluster(cluster, 1);
      }
    }
    medians.push_back(counts.Median());
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
