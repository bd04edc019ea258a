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

#include "ablations/judge/options.h"
#include "ablations/plan/subject.h"
#include "ablations/record/store.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

absl::StatusOr<summary::Summary> Summarize(const Record& record, const Subject& subject,
                                           const SummarizeOptions& options = {});

// How many blocks the record lacks of those that run.json plans, the peers' among them.
absl::StatusOr<int64_t> MissingBlocks(const Record& record);

}  // namespace warpledger::ablations
