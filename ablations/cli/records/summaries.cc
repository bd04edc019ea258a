// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/records/summaries.h"

#include <optional>

#include "ablations/base/files.h"
#include "ablations/cli/records/find_micro.h"
#include "ablations/cli/records/kept_summaries.h"
#include "ablations/judge/calibration_summary.h"
#include "ablations/judge/summarize.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/parallel.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

absl::StatusOr<nlohmann::ordered_json> ComputeSummary(const std::string& path) {
  if (ablations::IsCalibrationRecord(path)) {
    ASSIGN_OR_RETURN(ablations::CalibrationRecord record, ablations::LoadCalibration(path));
    return ablations::SummarizeCalibration(record);
  }
  ASSIGN_OR_RETURN(ablations::Record record, ablations::LoadRecord(path));
  ASSIGN_OR_RETURN(std::optional<ablations::MicroRecord> micro,
                   FindMicroRecord(path, record.run.gpu.slug));
  return ablations::Summarize(record, {.micro = std::move(micro)});
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> ParseFile(const std::string& text, const std::string& path) {
  absl::StatusOr<nlohmann::ordered_json> json = ablations::ParseJson(text);
  if (json.ok()) return json;
  return absl::DataLossError(absl::StrCat(path, ": ", json.status().message()));
}

absl::StatusOr<nlohmann::ordered_json> ReadJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ablations::ReadFile(path));
  return ParseFile(text, path);
}

absl::StatusOr<nlohmann::ordered_json> SummarizeRecord(const std::string& path) {
  const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(path);
  if (!files.ok() || !files->packed()) return ComputeSummary(path);
  return KeptOrComputed(absl::StrCat(ablations::WithoutPackSuffix(path), ablations::kPackSuffix),
                        [&] { return ComputeSummary(path); });
}

absl::StatusOr<nlohmann::ordered_json> ReadSummary(const std::string& path) {
  ASSIGN_OR_RETURN(const ablations::RecordFiles files, ablations::RecordFiles::Open(path));
  if (files.packed()) {
    // Read as from a file, whose counts are unsigned where computed ones are not.
    ASSIGN_OR_RETURN(const nlohmann::ordered_json summary, SummarizeRecord(path));
    return ablations::ParseJson(ablations::DumpFile(summary));
  }
  const std::string summary_file = files.PathOf(ablations::kSummaryFile);
  if (!files.Has(ablations::kSummaryFile)) {
    return absl::NotFoundError(absl::StrCat(summary_file,
                                            " is not there; write it with "
                                            "`warpledger judge --record=",
                                            path, "`"));
  }
  return ReadJson(summary_file);
}

absl::StatusOr<std::vector<nlohmann::ordered_json>> ReadSummaries(const Flag<std::string>& record) {
  RETURN_IF_ERROR(record.Needed(
      "DIR[,DIR..] is missing: records of one GPU that `warpledger judge` has judged"));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, NamesIn(record));
  std::vector<nlohmann::ordered_json> summaries;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(nlohmann::ordered_json summary, ReadSummary(path));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::vector<std::pair<std::string, absl::StatusOr<nlohmann::ordered_json>>> SummariesIn(
    const std::string& folder) {
  const std::vector<std::string> paths = ablations::RecordsIn(folder);
  std::vector<std::optional<absl::StatusOr<nlohmann::ordered_json>>> read(paths.size());
  ParallelFor(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(paths[at]);
    if (!files.ok()) {
      read[at] = files.status();
    } else if (files->Has(files->packed() ? ablations::kRunFile : ablations::kSummaryFile)) {
      read[at] = ReadSummary(paths[at]);
    }
  });
  std::vector<std::pair<std::string, absl::StatusOr<nlohmann::ordered_json>>> summaries;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (read[i]) summaries.emplace_back(paths[i], *std::move(read[i]));
  }
  return summaries;
}

bool IsCalibration(const nlohmann::ordered_json& summary) {
  return summary["design"] == ablations::kCalibrateDesign;
}

}  // namespace warpledger::cli
