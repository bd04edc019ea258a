// SPDX-License-Identifier: Apache-2.0
// summary.json read as typed values (summary.h), checked once at the door.
//
// Contract: ParseSummary() either returns a summary in which every field that
// the report needs has the type that reports/RECORD.md gives it, every shape
// that is mentioned exists and every verdict has a known name; or one error. Unknown fields
// are ignored, so that records of later minor changes still render.
//
// Errors: InvalidArgument with the JSON path ("cells[3].p50_us"), what was
// found there, and what to do.
//
//   absl::StatusOr<Summary> summary = ParseSummary(json);

#ifndef WARPLEDGER_REPORTS_MODEL_SUMMARY_VIEW_H_
#define WARPLEDGER_REPORTS_MODEL_SUMMARY_VIEW_H_

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "reports/model/summary.h"

namespace warpledger::report {

absl::StatusOr<Summary> ParseSummary(const nlohmann::ordered_json& json);

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_MODEL_SUMMARY_VIEW_H_
