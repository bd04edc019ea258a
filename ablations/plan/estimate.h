// SPDX-License-Identifier: Apache-2.0
// What a run would take, before it starts: cells, samples and seconds.
//
// Contract: a pure function of its arguments. Each sample costs one untimed and one
// timed replay, and each process spends on each shape that it has blocks left for
// its start, its warm-up and the FP64 reference. A replay takes what the launches
// take that the timer would plan for a kernel of known time, else `replay_us`: less
// than that for kernels too slow for one rotation over the input sets. Peers and
// checks are not counted.
//
//   RunEstimate estimate = EstimateRun(plan, CompletedOurs(record), TimesIn(record));
//   double minutes = estimate.seconds_left / 60;

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/plan/subject.h"
#include "ablations/record/store.h"

namespace warpledger::ablations {

struct RunPlan {
  PlannedDesign design;
  std::vector<ShapeInfo> shapes;
  int processes = 0;
  int blocks = 0;  // per process and shape
  double replay_us = 0;
  int max_launches = 256;
  std::optional<AlonePlan> alone = std::nullopt;  // a sample is a visit, and takes as long
  int cpu_cores = 1;
};

// Median microseconds of a launch, by (printed configuration, shape); the
// configuration of the empty kernel is "".
using KnownTimes = std::map<std::pair<std::string, std::string>, double>;

struct RunEstimate {
  int arms = 0;        // of the design, and the floor where they take turns
  int kernels = 0;     // distinct configurations
  int64_t blocks = 0;  // where each arm is alone, visits
  int64_t blocks_done = 0;
  int64_t samples = 0;
  int64_t samples_left = 0;
  double seconds_left = 0;
  int times = 0;        // arms times shapes
  int times_known = 0;  // of them, those whose kernel's time is known there
};

// The blocks of our own arms that a record holds in full.
std::set<BlockKey> CompletedOurs(const Record& record);

// Of the record's own arms.
KnownTimes TimesIn(const Record& record);

RunEstimate EstimateRun(const RunPlan& plan, const std::set<BlockKey>& done,
                        const KnownTimes& known = {});

}  // namespace warpledger::ablations
