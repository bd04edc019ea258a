// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/cluster_median.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "ablations/stats/distributions.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

// The values of all clusters, sorted, and the medians of resamples of them. No resample is copied
// or sorted: where its median lies is counted.
class Pooled {
 public:
  explicit Pooled(const std::vector<std::vector<double>>& clusters) {
    struct Value {
      double value;
      uint32_t cluster;
      size_t index;  // in its cluster
    };
    std::vector<Value> values;
    for (uint32_t c = 0; c < clusters.size(); ++c) {
      for (size_t i = 0; i < clusters[c].size(); ++i) values.push_back({clusters[c][i], c, i});
      sizes_.push_back(clusters[c].size());
      places_.emplace_back(clusters[c].size());
    }
    std::sort(values.begin(), values.end(),
              [](const Value& a, const Value& b) { return a.value < b.value; });
    below_middle_.resize(clusters.size());
    for (uint32_t place = 0; place < values.size(); ++place) {
      const auto& [value, cluster, index] = values[place];
      sorted_.push_back(value);
      owner_.push_back(cluster);
      places_[cluster][index] = place;
      if (place < values.size() / 2) ++below_middle_[cluster];
    }
    drawn_.resize(values.size());
  }

  uint32_t clusters() const { return static_cast<uint32_t>(sizes_.size()); }

  // Between which two values, by their places, the median of a resample lies: of all values of
  // cluster c times[c] times. The places of one value may differ, its neighbours' order may not.
  std::pair<uint32_t, uint32_t> MedianOfClusters(const std::vector<uint32_t>& times) const {
    // From the middle of all values, near which it lies, to it.
    size_t total = 0;
    size_t below = 0;  // values of the resample before `place`
    for (size_t c = 0; c < times.size(); ++c) {
      total += times[c] * sizes_[c];
      below += times[c] * below_middle_[c];
    }
    auto place = static_cast<uint32_t>(sorted_.size() / 2);
    while (below > (total - 1) / 2) below -= times[owner_[--place]];
    const auto advance_to = [&](size_t rank) {
      while (below + times[owner_[place]] <= rank) below += times[owner_[place++]];
      return place;
    };
    const uint32_t lower = advance_to((total - 1) / 2);
    return {lower, advance_to(total / 2)};
  }

  // The same of clusters drawn with replacement, and of as many values of each as it has.
  std::pair<uint32_t, uint32_t> MedianOfDraws(Random& random) {
    std::fill(drawn_.begin(), drawn_.end(), 0);
    size_t total = 0;
    for (uint32_t slot = 0; slot < clusters(); ++slot) {
      const std::vector<uint32_t>& places = places_[random.Below(clusters())];
      const auto size = static_cast<uint32_t>(places.size());
      for (uint32_t k = 0; k < size; ++k) ++drawn_[places[random.Below(size)]];
      total += size;
    }
    uint32_t place = 0;
    size_t until = drawn_[0];
    while (until <= (total - 1) / 2) until += drawn_[++place];
    const uint32_t lower = place;
    while (until <= total / 2) until += drawn_[++place];
    return {lower, place};
  }

  double Between(const std::pair<uint32_t, uint32_t>& places) const {
    const double lower = sorted_[places.first];
    return lower + 0.5 * (sorted_[places.second] - lower);
  }

 private:
  std::vector<double> sorted_;
  std::vector<uint32_t> owner_;                // the cluster of each of them
  std::vector<size_t> sizes_;                  // by cluster
  std::vector<size_t> below_middle_;           // by cluster: its values in the lower half of all
  std::vector<std::vector<uint32_t>> places_;  // by cluster: where each of its values is
  std::vector<uint32_t> drawn_;                // by place
};

// How often which median was drawn. Twenty thousand resamples have a few hundred different ones, so
// that counting them and sorting those takes a quarter of the time of sorting all.
class MedianCounts {
 public:
  void Add(const std::pair<uint32_t, uint32_t>& places, int times) {
    times_[uint64_t{places.first} << 32 | places.second] += times;
  }

  std::vector<double> Sorted(const Pooled& pooled) const {
    std::vector<std::pair<double, int>> different;
    size_t resamples = 0;
    for (const auto& [key, times] : times_) {
      different.emplace_back(
          pooled.Between({static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)}), times);
      resamples += static_cast<size_t>(times);
    }
    std::sort(different.begin(), different.end());
    std::vector<double> medians;
    medians.reserve(resamples);
    for (const auto& [median, times] : different) {
      medians.insert(medians.end(), static_cast<size_t>(times), median);
    }
    return medians;
  }

 private:
  std::unordered_map<uint64_t, int> times_;
};

// With at most this many clusters, resamples of whole clusters repeat so often (five clusters have
// 126 different ones) that each different one's median is computed once.
constexpr uint32_t kMostClustersToCount = 6;

void CountMediansOfFewClusters(const Pooled& pooled, int resamples, Random& random,
                               MedianCounts* counts) {
  // A resample's key has how often each cluster was drawn as its digits.
  const uint32_t clusters = pooled.clusters();
  const uint32_t base = clusters + 1;
  std::vector<uint32_t> digit(clusters, 1);
  for (uint32_t c = 1; c < clusters; ++c) digit[c] = digit[c - 1] * base;
  std::vector<int> times_drawn(static_cast<size_t>(digit.back()) * base);
  for (int i = 0; i < resamples; ++i) {
    uint32_t key = 0;
    for (uint32_t slot = 0; slot < clusters; ++slot) key += digit[random.Below(clusters)];
    ++times_drawn[key];
  }
  std::vector<uint32_t> times(clusters);
  for (uint32_t key = 0; key < times_drawn.size(); ++key) {
    if (times_drawn[key] == 0) continue;
    for (uint32_t c = 0; c < clusters; ++c) times[c] = key / digit[c] % base;
    counts->Add(pooled.MedianOfClusters(times), times_drawn[key]);
  }
}

void CountMediansOfClusters(const Pooled& pooled, int resamples, Random& random,
                            MedianCounts* counts) {
  std::vector<uint32_t> times(pooled.clusters());
  for (int i = 0; i < resamples; ++i) {
    std::fill(times.begin(), times.end(), 0);
    for (uint32_t slot = 0; slot < times.size(); ++slot) {
      ++times[random.Below(pooled.clusters())];
    }
    counts->Add(pooled.MedianOfClusters(times), 1);
  }
}

// Medians of resamples of whole clusters, or of values inside them, sorted.
std::vector<double> ResampledMedians(const std::vector<std::vector<double>>& clusters,
                                     const BootstrapOptions& options) {
  Pooled pooled(clusters);
  Random random(options.seed);
  MedianCounts counts;
  const uint32_t n_clusters = pooled.clusters();
  if (options.inside_clusters || n_clusters == 1) {
    for (int i = 0; i < options.resamples; ++i) counts.Add(pooled.MedianOfDraws(random), 1);
  } else if (n_clusters <= kMostClustersToCount) {
    CountMediansOfFewClusters(pooled, options.resamples, random, &counts);
  } else {
    CountMediansOfClusters(pooled, options.resamples, random, &counts);
  }
  return counts.Sorted(pooled);
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

double ClusterMedian::MeanOfMedians() const { return Mean(cluster_medians_); }

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
  const double mean = MeanOfMedians();
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
