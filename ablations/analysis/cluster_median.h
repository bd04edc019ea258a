// The median of values that come in clusters (one per process), with intervals.
//
// Two intervals are computed and the envelope of both is what the ledger uses:
// - Bootstrap: resample processes with replacement, then blocks inside each, and
//   take percentiles of the pooled median.
// - Student: t with (processes - 1) degrees of freedom on the processes' own
//   medians (Ibragimov and Müller, 2010).
// Why both: three processes have only ten resamples of processes, and one in
// nine holds a single process. The bootstrap's 95% interval then ends about
// where the outer two processes' medians are, and three values lie on one side
// of the truth in a quarter of all runs. Student's interval holds its level
// there, but it trusts a small spread between processes even when the blocks
// inside are noisy in a way that medians hide; the bootstrap sees the blocks.
//
// Contract: deterministic from the seed. Costs resamples x values cheap steps.
// With one cluster Student's interval does not exist and the envelope is the
// bootstrap's, which knows nothing of other processes: callers must not judge.
//
//   ClusterMedian log_ratio(values_by_process, {.resamples = 20000, .seed = 1});
//   Interval ci = log_ratio.Envelope(0.95);
//   double p = log_ratio.PValue(0.0);

#ifndef WARPLEDGER_ABLATIONS_ANALYSIS_CLUSTER_MEDIAN_H_
#define WARPLEDGER_ABLATIONS_ANALYSIS_CLUSTER_MEDIAN_H_

#include <cstdint>
#include <vector>

namespace warpledger::analysis {

struct Interval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  int resamples = 20000;
  uint64_t seed = 0;
};

class ClusterMedian {
 public:
  // At least one value in all; clusters without values are left out.
  ClusterMedian(std::vector<std::vector<double>> clusters, const BootstrapOptions& options);

  // The median of all values.
  double estimate() const { return estimate_; }
  int n_clusters() const { return static_cast<int>(cluster_medians_.size()); }
  int n_values() const { return n_values_; }

  // Two-sided, at any confidence in (0, 1), from the one set of resamples.
  Interval Bootstrap(double confidence) const;
  // Around the mean of the clusters' medians; infinite with one cluster.
  Interval Student(double confidence) const;
  // The wider of both on either side; always holds the estimate.
  Interval Envelope(double confidence) const;

  // Two-sided p-value of "the median is `null`": the larger of the bootstrap's,
  // with one added to count and resamples so that it is never 0, and Student's.
  double PValue(double null) const;

 private:
  double estimate_ = 0;
  int n_values_ = 0;
  std::vector<double> cluster_medians_;
  std::vector<double> resamples_;  // sorted
};

}  // namespace warpledger::analysis

#endif  // WARPLEDGER_ABLATIONS_ANALYSIS_CLUSTER_MEDIAN_H_
