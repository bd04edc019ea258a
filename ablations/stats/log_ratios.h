// SPDX-License-Identifier: Apache-2.0
// Pairs of samples that were taken in the same block of the same process.
//
// Contract: what drifts from block to block (clock, temperature) is common to
// both halves of a pair and cancels in the ratio. A sample without a partner is
// left out. A log-ratio is ln(time(base) / time(candidate)): above 0 is faster.
//
//   std::vector<Pair> pairs = PairUp(base, candidate);
//   std::vector<std::vector<double>> log_ratios = LogRatiosByProcess(pairs);

#pragma once

#include <vector>

#include "ablations/stats/cluster_median.h"
#include "absl/types/span.h"

namespace warpledger::analysis {

// One time of one arm on one shape. (process, block) is unique in a list.
struct Timing {
  int process = 0;
  int block = 0;
  double us = 0;
  double sm_mhz = 0;          // 0: not read
  bool throttled = false;     // by anything but the power limit
  bool power_capped = false;  // by the power limit
};

struct Pair {
  Timing base;
  Timing candidate;
};

// Ordered by process, then block.
std::vector<Pair> PairUp(absl::Span<const Timing> base, absl::Span<const Timing> candidate);

// One inner list per process that has pairs: ln(us of the base / us of the candidate).
std::vector<std::vector<double>> LogRatiosByProcess(absl::Span<const Pair> pairs);
// The same of SM cycles, which are us x sm_mhz. Both clocks of all pairs were read.
std::vector<std::vector<double>> LogCycleRatiosByProcess(absl::Span<const Pair> pairs);

// One inner list per process: ln(us).
std::vector<std::vector<double>> LogTimesByProcess(absl::Span<const Timing> timings);

// The ratio of two medians whose samples were taken apart: in two records, so
// that no sample of one has a partner in the other.
//
// What drifts from process to process no longer cancels, so the processes are
// the unit on both sides. Two intervals are computed, and as in cluster_median.h
// the envelope of both is what counts:
// - Welch: the difference of the means of the processes' medians over Welch's
//   standard error, held against Student's t with min(n, m) - 1 degrees of
//   freedom. Those are fewer than Welch's own formula gives; with them the level
//   holds for processes of unequal variance too (Ibragimov and Müller,
//   "Inference with few heterogeneous clusters", REStat 98 (2016)).
// - Bootstrap: each side's cluster bootstrap, the two joined without assuming
//   symmetry by Zou and Donner's rule, "Construction of confidence limits about
//   effect measures: a general approach", Statistics in Medicine 27 (2008).
//
// What no interval made of two records can hold: how much a whole run differs
// from the next one (another day, another board). See the reference kernels of
// compare.h for that.
//
// Contract: as ClusterMedian's. With fewer than two processes on a side Welch's
// interval is infinite, and so is the envelope.
//
//   UnpairedLogRatio ratio(LogTimesByProcess(base), LogTimesByProcess(candidate), {.seed = 1});
//   Interval ci = ratio.Envelope(0.95);        // of ln(time(base) / time(candidate))
//   double p = ratio.PValue(-std::log1p(0.02));

class UnpairedLogRatio {
 public:
  // ln(us), one inner list per process; at least one value on each side.
  UnpairedLogRatio(const std::vector<std::vector<double>>& base,
                   const std::vector<std::vector<double>>& candidate,
                   const BootstrapOptions& options);

  // ln(median(base) / median(candidate)): above 0 the candidate is faster.
  double estimate() const { return base_.estimate() - candidate_.estimate(); }
  int n_base() const { return base_.n_clusters(); }
  int n_candidate() const { return candidate_.n_clusters(); }
  // Of the side that has fewer processes.
  int n_clusters() const;

  // Two-sided, at any confidence in (0, 1).
  Interval Welch(double confidence) const;
  Interval Bootstrap(double confidence) const;
  // From the lowest to the highest end of both; always holds the estimate.
  Interval Envelope(double confidence) const;

  // Two-sided p-value of "the log-ratio is `null`": the level at which the
  // envelope ceases to hold `null`, so that test and interval agree. Never under
  // 2 / (resamples + 1), which is as far as the bootstrap can see.
  double PValue(double null) const;

 private:
  ClusterMedian base_;
  ClusterMedian candidate_;
  double mean_ = 0;  // difference of the means of the processes' medians
  double standard_error_ = 0;
  double smallest_p_ = 0;
};

}  // namespace warpledger::analysis
