// SPDX-License-Identifier: Apache-2.0
// The summary of a record, as the commands that judge and report need it.
//
// Errors: NotFound for a record that is not there, DataLoss for a file that is damaged, and those
// of loading and judging.
//
//   absl::StatusOr<RecordSummary> summary = SummarizeRecord("out/mine");

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ablations/cli/flags.h"
#include "ablations/record/micro_record.h"
#include "ablations/summary/calibration.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::cli {

// The text of `path` as JSON.
absl::StatusOr<nlohmann::ordered_json> ParseFile(const std::string& text, const std::string& path);
absl::StatusOr<nlohmann::ordered_json> ReadJson(const std::string& path);

// The newest microbenchmarks of the GPU model, which judging quotes: beside the record, else among
// those that come with the program. Empty when there are none.
absl::StatusOr<std::optional<ablations::MicroRecord>> FindMicroRecord(const std::string& record_dir,
                                                                      const std::string& gpu_slug);

using RecordSummary = std::variant<summary::Summary, summary::CalibrationSummary>;
// As summary.json holds it.
nlohmann::ordered_json JsonOf(const RecordSummary& summary);

// What `judge` makes of the samples of a run or of a calibration, a folder or a pack. No
// summary.json is read: it may be older than the samples. Errors name the record.
absl::StatusOr<RecordSummary> SummarizeRecord(const std::string& path);

// The same of a run alone: a calibration is refused.
absl::StatusOr<summary::Summary> SummarizeRun(const std::string& path);

// The summaries of all runs that --record names.
absl::StatusOr<std::vector<summary::Summary>> SummarizeRuns(const Flag<std::string>& record);

// The summaries of all runs and calibrations in a folder, by their records.
std::vector<std::pair<std::string, absl::StatusOr<RecordSummary>>> SummariesIn(
    const std::string& folder);

}  // namespace warpledger::cli
