// SPDX-License-Identifier: Apache-2.0
// `warpledger calibrate`: measures how often the ledger would be wrong, on pairs
// whose truth is known (plan/calibration.h), and writes a record.
//
// Samples are taken by the same worker as those of `run`, under the same protocol
// and budget per trial. The same call on the same directory resumes after a kill.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablations/plan/calibration.h"
#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "absl/status/status.h"

namespace warpledger::ablations {

struct CalibrateOptions {
  ShapeInfo shape;
  CalibrationPlan plan;  // cycles are filled in
  int groups = 1;        // of plan.trial_processes processes each
  std::string out_dir;
  int blocks = 24;
  uint64_t seed = 1;
  double replay_us = 1000;
  int max_launches = 256;
  int silence_limit_s = 300;
  std::vector<std::string> argv;
  std::vector<std::string> worker;  // program and arguments; speaks as worker.h says
};

absl::Status Calibrate(const CalibrateOptions& options, const Subject& subject, Rig& rig,
                       Machine& machine);

}  // namespace warpledger::ablations
