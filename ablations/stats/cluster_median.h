// SPDX-License-Identifier: Apache-2.0
// The median of values that come in clusters (one per process), with intervals.
//
// Two intervals are computed. Times and effects of factorials have the envelope of both:
// - Bootstrap: resample whole processes with replacement and take percentiles of
//   the pooled median. A process's blocks stay together, so that what lasts from
//   block to block stays in. One process alone has its blocks resampled.
// - Student: t with (processes - 1) degrees of freedom on the processes' own
//   medians (Ibragimov and Müller, 2010).
// Why both: five processes have only 126 distinct resamples, and the bootstrap's
// 95% interval covers the truth in 83% of runs; Student's holds its level. It is
// drawn around the mean of the medians, and the bootstrap around the estimate,
// which the interval must hold. Together they cover 95% (the simulations in
// tests/ablations/analysis). Rejected: drawing blocks inside the drawn processes
// too. That counts the noise within processes twice and covers 98.5% where
// processes do not differ (Davison and Hinkley, "Bootstrap methods and their
// application", 1997, section 3.8, prefer whole groups for the same reason).
//
// Contract: deterministic from the seed. Costs resamples x values cheap steps.
// With one cluster Student's interval does not exist and the envelope is the
// bootstrap's, which knows nothing of other processes: callers must not judge.
//
//   ClusterMedian log_ratio(values_by_process, {.resamples = 20000, .seed = 1});
//   Interval ci = log_ratio.Envelope(0.95);

#pragma once

#include <cstdint>
#include <vector>

#include "ablations/stats/effects/effect.h"

namespace warpledger::analysis {

struct BootstrapOptions {
  int resamples = 20000;
  uint64_t seed = 0;
  bool inside_clusters = false;  // draw values inside the drawn clusters too
};

class ClusterMedian {
 public:
  // At least one value in all; clusters without values are left out.
  ClusterMedian(std::vector<std::vector<double>> clusters, const BootstrapOptions& options);

  // The median of all values, and the mean of the clusters' own medians: a time is the one, a
  // ratio the other, as verdicts judge it (decisions/0002).
  double estimate() const { return estimate_; }
  double MeanOfMedians() const;
  int n_clusters() const { return static_cast<int>(cluster_medians_.size()); }
  int n_values() const { return n_values_; }

  // Two-sided, at any confidence in (0, 1), from the one set of resamples.
  Interval Bootstrap(double confidence) const;
  // Around the mean of the clusters' medians; infinite with one cluster.
  Interval Student(double confidence) const;
  // The wider of both on either side; always holds both estimates.
  Interval Envelope(double confidence) const;

 private:
  double estimate_ = 0;
  int n_values_ = 0;
  std::vector<double> cluster_medians_;
  std::vector<double> resamples_;  // sorted
};

}  // namespace warpledger::analysis
