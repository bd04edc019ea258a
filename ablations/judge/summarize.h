// SPDX-License-Identifier: Apache-2.0
// The summary of a run: what a record says, in figures and verdicts.
//
// Contract: a pure function of the record, of its subject and of the options, the quoted
// microbenchmarks among them; the same input gives the same bytes. Derived figures carry six
// significant digits; arms and shapes stand in run.json's order. The schema is reports/RECORD.md's.
// Samples of arms or shapes that run.json does not name are an error, never skipped.
//
//   absl::StatusOr<summary::Summary> summary = Summarize(*LoadRecord(dir), subject);

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ablations/plan/calibration.h"
#include "ablations/plan/subject.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/store.h"
#include "ablations/summary/calibration.h"
#include "ablations/summary/profile.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// How a record is judged: levels, resamples, and what is quoted beside it.
struct SummarizeOptions {
  double confidence = 0.95;  // of cells, controls and families of verdicts
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
  double neutral_delta = 0.01;
  // Mean errors further apart than this factor are a finding of their own. In the H200's records
  // of 2026-11 what only changes the order of sums, or when they are rescaled, stays within 1.17;
  // every toggle that rounds an intermediate to fp16 reaches 1.28 or more on some inputs. Scales
  // per tile of K and V lie on both sides, 1.18 to 1.36. 1.5 would part one shape of `wmma_pv`
  // (1.48) from the next (1.54).
  double error_ratio = 1.25;
  std::optional<MicroRecord> micro = {};  // of the same GPU; quoted, never judged
};

absl::StatusOr<summary::Summary> Summarize(const Record& record, const Subject& subject,
                                           const SummarizeOptions& options = {});

// How many blocks the record lacks of those that run.json plans, the peers' among them.
absl::StatusOr<int64_t> MissingBlocks(const Record& record);

// The summary of a calibration: false verdicts, power and coverage on pairs whose
// truth is known (schema: reports/RECORD.md).
//
// Contract: a pure function of the record and the options, with the same statistics; the same
// input gives the same bytes. A group of processes counts when each of its processes has all
// blocks. Machine-code rules are left out: all arms are one kernel, which those rules would call
// INVALID, and rightly.
//
//   absl::StatusOr<summary::CalibrationSummary> summary =
//       SummarizeCalibration(*LoadCalibration(dir));
//
// DataLoss for a record without one whole group.
absl::StatusOr<summary::CalibrationSummary> SummarizeCalibration(
    const CalibrationRecord& record, const SummarizeOptions& options = {});

// Counters of kernels, beside the times and ceilings that explain them: what the report and the
// pictures of a profile record read. The profiles with
// the times of the newest record beside `dir` that timed the same machine code on
// the same kind of GPU, the newest microbenchmarks of it there as ceilings, and which
// profiles are one step apart. Records beside it that can't be read are skipped
// and named in `skipped`.
//   summary_of: the summary of the run at a path; null: judges it
using SummaryAt = std::function<absl::StatusOr<summary::Summary>(const std::string& path)>;
absl::StatusOr<summary::ProfileSummary> SummarizeProfiles(const std::string& path,
                                                          const Subject& subject,
                                                          const SummaryAt& summary_of = nullptr);

}  // namespace warpledger::ablations
