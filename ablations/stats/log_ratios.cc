// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/log_ratios.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "ablations/stats/distributions.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

std::vector<std::vector<double>> Lists(std::map<int, std::vector<double>> by_process) {
  std::vector<std::vector<double>> lists;
  for (auto& [process, values] : by_process) lists.push_back(std::move(values));
  return lists;
}

}  // namespace

std::vector<Pair> PairUp(absl::Span<const Timing> base, absl::Span<const Timing> candidate) {
  std::map<std::pair<int, int>, const Timing*> bases;
  for (const Timing& timing : base) bases[{timing.process, timing.block}] = &timing;
  std::map<std::pair<int, int>, Pair> pairs;
  for (const Timing& timing : candidate) {
    const std::pair<int, int> key = {timing.process, timing.block};
    const auto it = bases.find(key);
    if (it != bases.end()) pairs[key] = {.base = *it->second, .candidate = timing};
  }
  std::vector<Pair> ordered;
  for (const auto& [key, pair] : pairs) ordered.push_back(pair);
  return ordered;
}

std::vector<std::vector<double>> LogRatiosByProcess(absl::Span<const Pair> pairs) {
  std::map<int, std::vector<double>> by_process;
  for (const Pair& pair : pairs) {
    by_process[pair.base.process].push_back(std::log(pair.base.us / pair.candidate.us));
  }
  return Lists(std::move(by_process));
}

std::vector<std::vector<double>> LogCycleRatiosByProcess(absl::Span<const Pair> pairs) {
  std::map<int, std::vector<double>> by_process;
  for (const Pair& pair : pairs) {
    by_process[pair.base.process].push_back(
        std::log(pair.base.us * pair.base.sm_mhz / (pair.candidate.us * pair.candidate.sm_mhz)));
  }
  return Lists(std::move(by_process));
}

std::vector<std::vector<double>> LogTimesByProcess(absl::Span<const Timing> timings) {
  std::map<int, std::vector<double>> by_process;
  for (const Timing& timing : timings) by_process[timing.process].push_back(std::log(timing.us));
  return Lists(std::move(by_process));
}

namespace {

struct Moments {
  double mean = 0;
  double squared_error = 0;  // of the mean; 0 with one process
};

Moments OfProcessMedians(const std::vector<std::vector<double>>& clusters) {
  std::vector<double> medians;
  for (const std::vector<double>& cluster : clusters) {
    if (!cluster.empty()) medians.push_back(Median(cluster));
  }
  Moments moments;
  const double n = static_cast<double>(medians.size());
  for (const double median : medians) moments.mean += median / n;
  if (medians.size() < 2) return moments;
  for (const double median : medians) {
    moments.squared_error += (median - moments.mean) * (median - moments.mean) / (n - 1) / n;
  }
  return moments;
}

// The noise inside processes counts too, a second time where their medians hold it
// already: a record of two processes whose medians happen to agree must not look
// exact. A comparison may be cautious; nothing is adopted by it.
BootstrapOptions FirstStream(BootstrapOptions options) {
  options.inside_clusters = true;
  return options;
}

// The two sides are independent, so they must not share a stream of numbers.
BootstrapOptions SecondStream(BootstrapOptions options) {
  options = FirstStream(options);
  options.seed = StreamSeed(options.seed, "candidate");
  return options;
}

}  // namespace

UnpairedLogRatio::UnpairedLogRatio(const std::vector<std::vector<double>>& base,
                                   const std::vector<std::vector<double>>& candidate,
                                   const BootstrapOptions& options)
    : base_(base, FirstStream(options)),
      candidate_(candidate, SecondStream(options)),
      smallest_p_(2.0 / (options.resamples + 1)) {
  const Moments of_base = OfProcessMedians(base);
  const Moments of_candidate = OfProcessMedians(candidate);
  mean_ = of_base.mean - of_candidate.mean;
  standard_error_ = std::sqrt(of_base.squared_error + of_candidate.squared_error);
}

int UnpairedLogRatio::n_clusters() const { return std::min(n_base(), n_candidate()); }

Interval UnpairedLogRatio::Welch(double confidence) const {
  if (n_clusters() < 2) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {-kInfinity, kInfinity};
  }
  const double half_width = StudentCritical(1 - confidence, n_clusters() - 1) * standard_error_;
  return {mean_ - half_width, mean_ + half_width};
}

Interval UnpairedLogRatio::Bootstrap(double confidence) const {
  const auto distances = [confidence](const ClusterMedian& side) -> Interval {
    const Interval interval = side.Bootstrap(confidence);
    return {std::max(0.0, side.estimate() - interval.low),
            std::max(0.0, interval.high - side.estimate())};
  };
  const Interval of_base = distances(base_);
  const Interval of_candidate = distances(candidate_);
  return {estimate() - std::hypot(of_base.low, of_candidate.high),
          estimate() + std::hypot(of_base.high, of_candidate.low)};
}

Interval UnpairedLogRatio::Envelope(double confidence) const {
  const Interval welch = Welch(confidence);
  const Interval bootstrap = Bootstrap(confidence);
  return {std::min(welch.low, bootstrap.low), std::max(welch.high, bootstrap.high)};
}

double UnpairedLogRatio::PValue(double null) const {
  const auto excluded_at = [&](double alpha) {
    const Interval interval = Envelope(1 - alpha);
    return null < interval.low || null > interval.high;
  };
  double low = smallest_p_;
  if (excluded_at(low)) return low;
  double high = 1;  // the interval at level 1 is about the estimate
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (excluded_at(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace warpledger::analysis
