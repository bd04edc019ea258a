// SPDX-License-Identifier: Apache-2.0
// `warpledger calibrate`: measures how often the ledger would be wrong, on pairs
// whose truth is known (plan/calibration.h), and writes a record.
//
// Samples are taken by the same worker as those of `run`, under the same protocol
// and budget per trial. The same call on the same directory resumes after a kill.

#pragma once

#include "ablations/measure/run.h"
#include "ablations/plan/calibration.h"
#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "absl/status/status.h"

namespace warpledger::ablations {

// A run of the design kCalibrateDesign on one shape. Each plan.trial_processes of its processes
// are one trial of every pair.
struct CalibrateOptions : RunOptions {
  CalibrationPlan plan;  // cycles are filled in
};

absl::Status Calibrate(const CalibrateOptions& options, const Subject& subject, Rig& rig,
                       Machine& machine);

}  // namespace warpledger::ablations
