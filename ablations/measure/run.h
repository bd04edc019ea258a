// SPDX-License-Identifier: Apache-2.0
// `warpledger run`: measures a design of a subject on problems and writes a record.
//
// Describes the machine, the build and the design; controller.h does the rest.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/plan/subject.h"
#include "ablations/record/record.h"
#include "absl/status/status.h"

namespace warpledger::ablations {

struct RunOptions {
  std::string design = "ladder";
  std::string name;  // of the run, before its time; empty: the design's
  std::vector<ShapeInfo> shapes;
  std::string out_dir;
  int processes = 5;
  int blocks = 24;  // per process and shape
  uint64_t seed = 1;
  double replay_us = 1000;
  int max_launches = 256;
  std::vector<std::string> peers;  // of Subject::Peers(); empty: none is timed
  std::string python = "python3";  // for the peers
  int silence_limit_s = 300;       // a process that says nothing for longer is stopped
  int arm_limit_s = 60;            // an arm that gives no answer for longer is broken
  std::string cache = kCacheWarm;
  std::optional<AlonePlan> alone;  // empty: arms take turns
  std::optional<StoppingRule> stopping;
  std::vector<PlantedFault> planted;
  std::vector<std::string> argv;    // as called, for run.json
  std::vector<std::string> worker;  // program and arguments; speaks as worker.h says
};

// InvalidArgument for the first problem that the design can't be timed on.
absl::Status RunDesign(const RunOptions& options, const Subject& subject, const Rig& rig,
                       const Machine& machine);

// What run.json says: the options, the design's arms, the GPU, this build and the time.
RunInfo DescribeRun(const RunOptions& options, const Subject& subject, const PlannedDesign& design,
                    GpuInfo gpu);

}  // namespace warpledger::ablations
