// What a run would take, before it starts: cells, samples and seconds.
//
// Contract: a pure function of its arguments. Seconds are a lower estimate:
// each sample costs one untimed and one timed replay of `replay_us`, and each
// process spends on each shape that it has blocks left for its start, its
// warm-up and the FP64 reference. Kernels too slow for one rotation over the
// input sets within `replay_us` take longer; peers and checks are not counted.
//
//   RunEstimate estimate = EstimateRun(plan, CompletedOurs(record));
//   double minutes = estimate.seconds_left / 60;

#ifndef WARPLEDGER_ABLATIONS_ESTIMATE_H_
#define WARPLEDGER_ABLATIONS_ESTIMATE_H_

#include <cstdint>
#include <set>
#include <vector>

#include "ablations/designs.h"
#include "ablations/store.h"
#include "kernels/sdpa/problem.h"

namespace warpledger::ablations {

struct RunPlan {
  Design design;
  std::vector<sdpa::NamedShape> shapes;
  int processes = 0;
  int blocks = 0;  // per process and shape
  double replay_us = 0;
  int cpu_cores = 1;
};

struct RunEstimate {
  int arms = 0;     // of the design, and the floor
  int kernels = 0;  // distinct configurations
  int64_t blocks = 0;
  int64_t blocks_done = 0;
  int64_t samples = 0;
  int64_t samples_left = 0;
  double seconds_left = 0;
};

// The blocks of our own arms that a record holds in full.
std::set<BlockKey> CompletedOurs(const Record& record);

RunEstimate EstimateRun(const RunPlan& plan, const std::set<BlockKey>& done);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_ESTIMATE_H_
