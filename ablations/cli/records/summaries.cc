// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/records/summaries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "ablations/base/files.h"
#include "ablations/base/json_text.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/parallel.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<RecordSummary> FromText(const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ablations::ParseJson(text));
  if (ablations::TextOf(json, "design") == ablations::kCalibrateDesign) {
    return ablations::FromJson<summary::CalibrationSummary>(json);
  }
  return ablations::FromJson<summary::Summary>(json);
}

absl::StatusOr<RecordSummary> ComputeSummary(const std::string& path) {
  if (ablations::IsCalibrationRecord(path)) {
    ASSIGN_OR_RETURN(ablations::CalibrationRecord record, ablations::LoadCalibration(path));
    return ablations::SummarizeCalibration(record);
  }
  ASSIGN_OR_RETURN(ablations::Record record, ablations::LoadRecord(path));
  ASSIGN_OR_RETURN(std::optional<ablations::MicroRecord> micro,
                   FindMicroRecord(path, record.run.gpu.slug));
  ASSIGN_OR_RETURN(const ablations::Subject* subject, ablations::SubjectOf(record.run));
  return ablations::Summarize(record, *subject, {.micro = std::move(micro)});
}

// Which file it is, without reading it.
std::string IdentityOf(const fs::path& path) {
  std::error_code error;
  return absl::StrCat(path.string(), " ", fs::file_size(path, error), " ",
                      fs::last_write_time(path, error).time_since_epoch().count());
}

// The name of a pack's summary: all that it is computed from.
absl::StatusOr<std::string> KeyOf(const std::string& pack) {
  ASSIGN_OR_RETURN(const std::string bytes, ablations::ReadFile(pack));
  std::vector<std::string> parts = {IdentityOf(ablations::ExecutablePath()),
                                    ablations::Sha256(bytes)};
  std::error_code error;
  const fs::path folder = fs::absolute(pack, error).parent_path();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with("micro")) continue;
    const fs::path file = entry.is_directory(error) ? entry.path() / "micro.json" : entry.path();
    parts.push_back(IdentityOf(file));
  }
  std::sort(parts.begin() + 2, parts.end());
  return ablations::Sha256(absl::StrJoin(parts, "\n"));
}

// Several pages judge the same records. Where the environment's WARPLEDGER_SUMMARIES names a
// folder, a pack's summary is kept there and used again: by this very program alone, for the same
// bytes of the pack and the same microbenchmarks beside it.
absl::StatusOr<RecordSummary> SummarizePack(const std::string& path) {
  const char* folder = std::getenv("WARPLEDGER_SUMMARIES");
  if (folder == nullptr || *folder == '\0') return ComputeSummary(path);
  ASSIGN_OR_RETURN(const std::string key,
                   KeyOf(absl::StrCat(ablations::WithoutPackSuffix(path), ablations::kPackSuffix)));
  const std::string file = (fs::path(folder) / absl::StrCat(key, ".json")).string();
  if (const absl::StatusOr<std::string> kept = ablations::ReadFile(file); kept.ok()) {
    absl::StatusOr<RecordSummary> summary = FromText(*kept);
    if (summary.ok()) return summary;  // a damaged one is written again
  }
  ASSIGN_OR_RETURN(RecordSummary summary, ComputeSummary(path));
  std::error_code error;
  fs::create_directories(folder, error);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, ablations::DumpFile(JsonOf(summary))));
  return summary;
}

}  // namespace

absl::StatusOr<std::optional<ablations::MicroRecord>> FindMicroRecord(const std::string& record_dir,
                                                                      const std::string& gpu_slug) {
  const std::filesystem::path dir(record_dir);
  const auto beside = (dir.has_filename() ? dir : dir.parent_path()) / "..";
  absl::StatusOr<std::optional<ablations::MicroRecord>> found =
      ablations::NewestMicroRecord(beside.lexically_normal().string(), gpu_slug);
  if (!found.ok() || *found) return found;
  const absl::StatusOr<std::string> recorded =
      ablations::FindProgramFile(absl::StrCat("reports/data/", gpu_slug));
  if (!recorded.ok()) return std::nullopt;
  return ablations::NewestMicroRecord(*recorded, gpu_slug);
}

absl::StatusOr<nlohmann::ordered_json> ParseFile(const std::string& text, const std::string& path) {
  absl::StatusOr<nlohmann::ordered_json> json = ablations::ParseJson(text);
  if (json.ok()) return json;
  return absl::DataLossError(absl::StrCat(path, ": ", json.status().message()));
}

absl::StatusOr<nlohmann::ordered_json> ReadJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ablations::ReadFile(path));
  return ParseFile(text, path);
}

nlohmann::ordered_json JsonOf(const RecordSummary& summary) {
  return std::visit([](const auto& each) { return ablations::ToJson(each); }, summary);
}

absl::StatusOr<RecordSummary> SummarizeRecord(const std::string& path) {
  const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(path);
  absl::StatusOr<RecordSummary> summary =
      files.ok() && files->packed() ? SummarizePack(path) : ComputeSummary(path);
  if (summary.ok() || absl::StrContains(summary.status().message(), path)) return summary;
  return absl::Status(summary.status().code(),
                      absl::StrCat(path, ": ", summary.status().message()));
}

absl::StatusOr<summary::Summary> SummarizeRun(const std::string& path) {
  ASSIGN_OR_RETURN(RecordSummary summary, SummarizeRecord(path));
  if (auto* run = std::get_if<summary::Summary>(&summary)) return std::move(*run);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": a calibration, which judges no claim; name records of runs alone"));
}

absl::StatusOr<std::vector<summary::Summary>> SummarizeRuns(const Flag<std::string>& record) {
  RETURN_IF_ERROR(record.Needed("DIR[,DIR..] is missing: records of one GPU"));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, NamesIn(record));
  std::vector<summary::Summary> summaries;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(summaries.emplace_back(), SummarizeRun(path));
  }
  return summaries;
}

std::vector<std::pair<std::string, absl::StatusOr<RecordSummary>>> SummariesIn(
    const std::string& folder) {
  const std::vector<std::string> paths = ablations::RecordsIn(folder);
  std::vector<std::optional<absl::StatusOr<RecordSummary>>> read(paths.size());
  ParallelFor(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(paths[at]);
    if (!files.ok()) {
      read[at] = files.status();
    } else if (files->Has(ablations::kRunFile)) {
      read[at] = SummarizeRecord(paths[at]);
    }
  });
  std::vector<std::pair<std::string, absl::StatusOr<RecordSummary>>> summaries;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (read[i]) summaries.emplace_back(paths[i], *std::move(read[i]));
  }
  return summaries;
}

}  // namespace warpledger::cli
