// SPDX-License-Identifier: Apache-2.0
// The summary of a calibration: false verdicts, power and coverage on pairs whose
// truth is known (schema: reports/RECORD.md).
//
// Contract: a pure function of the record and the options, with the statistics of
// summarize.h; the same input gives the same bytes. A group of processes counts
// when each of its processes has all blocks. Machine-code rules are left out: all
// arms are one kernel, which those rules would call INVALID, and rightly.
//
//   absl::StatusOr<summary::CalibrationSummary> summary =
//       SummarizeCalibration(*LoadCalibration(dir));

#pragma once

#include "ablations/judge/options.h"
#include "ablations/plan/calibration_record.h"
#include "ablations/summary/calibration.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// DataLoss for a record without one whole group.
absl::StatusOr<summary::CalibrationSummary> SummarizeCalibration(
    const CalibrationRecord& record, const SummarizeOptions& options = {});

}  // namespace warpledger::ablations
