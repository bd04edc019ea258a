// SPDX-License-Identifier: Apache-2.0
// `warpledger judge`, `report`, `techniques` and `standings`: from records alone, without a GPU.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/paths.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/command.h"
#include "ablations/cli/find_micro.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/kept_summaries.h"
#include "ablations/cli/python.h"
#include "ablations/judge/calibration_summary.h"
#include "ablations/judge/compare/gate.h"
#include "ablations/judge/profile_summary.h"
#include "ablations/judge/summarize.h"
#include "ablations/judge/verdict_table.h"
#include "ablations/record/micro_record.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/stats/proportion.h"
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kernels/common/parallel.h"
#include "kernels/common/status_macros.h"
#include "reports/calibration.h"
#include "reports/dtypes.h"
#include "reports/profile.h"
#include "reports/render.h"
#include "reports/standings.h"
#include "reports/summary_view.h"
#include "reports/techniques.h"
#include "reports/tree_code.h"
#include "warpledger_source_hashes.h"

namespace warpledger::cli {
namespace {

constexpr char kLadderSection[] = "ladder";
constexpr char kStandingsSection[] = "standings";
constexpr absl::Duration kPlotSilenceLimit = absl::Minutes(5);

absl::StatusOr<nlohmann::ordered_json> ParseFile(const std::string& text, const std::string& path) {
  absl::StatusOr<nlohmann::ordered_json> json = ablations::ParseJson(text);
  if (json.ok()) return json;
  return absl::DataLossError(absl::StrCat(path, ": ", json.status().message()));
}

absl::StatusOr<nlohmann::ordered_json> ReadJson(const std::string& path) {
  const absl::StatusOr<std::string> text = ablations::ReadFile(path);
  if (!text.ok()) return text.status();
  return ParseFile(*text, path);
}

absl::StatusOr<nlohmann::ordered_json> ComputeSummary(const std::string& path) {
  if (ablations::IsCalibrationRecord(path)) {
    absl::StatusOr<ablations::CalibrationRecord> record = ablations::LoadCalibration(path);
    if (!record.ok()) return record.status();
    return ablations::SummarizeCalibration(*record);
  }
  absl::StatusOr<ablations::Record> record = ablations::LoadRecord(path);
  if (!record.ok()) return record.status();
  absl::StatusOr<std::optional<ablations::MicroRecord>> micro =
      FindMicroRecord(path, record->run.gpu.slug);
  if (!micro.ok()) return micro.status();
  return ablations::Summarize(*record, {.micro = *std::move(micro)});
}

absl::StatusOr<nlohmann::ordered_json> SummarizeRecord(const std::string& path) {
  const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(path);
  if (!files.ok() || !files->packed()) return ComputeSummary(path);
  return KeptOrComputed(absl::StrCat(ablations::WithoutPackSuffix(path), ablations::kPackSuffix),
                        [&] { return ComputeSummary(path); });
}

absl::StatusOr<nlohmann::ordered_json> SummarizeFlaggedRecord() {
  const std::string record = absl::GetFlag(FLAGS_record);
  if (record.empty()) {
    return absl::InvalidArgumentError(
        "--record=DIR is missing: the directory that `warpledger run` wrote, or a pack of one");
  }
  return SummarizeRecord(record);
}

// The summary.json of a folder, or what `judge` makes of a pack, which has none.
absl::StatusOr<nlohmann::ordered_json> ReadSummary(const std::string& path) {
  const absl::StatusOr<ablations::RecordFiles> files = ablations::RecordFiles::Open(path);
  if (!files.ok()) return files.status();
  if (files->packed()) {
    // Read as from a file, whose counts are unsigned where computed ones are not.
    const absl::StatusOr<nlohmann::ordered_json> summary = SummarizeRecord(path);
    if (!summary.ok()) return summary.status();
    return ablations::ParseJson(ablations::DumpFile(*summary));
  }
  const std::string summary_file = files->PathOf(ablations::kSummaryFile);
  if (!files->Has(ablations::kSummaryFile)) {
    return absl::NotFoundError(absl::StrCat(summary_file,
                                            " is not there; write it with "
                                            "`warpledger judge --record=",
                                            path, "`"));
  }
  return ReadJson(summary_file);
}

bool IsCalibration(const nlohmann::ordered_json& summary) {
  return summary["design"] == ablations::kCalibrateDesign;
}

// Adds the A/A families of another calibration's summary; nothing where it has none.
void AddFamilies(const nlohmann::ordered_json& other, report::PooledFamilies* pooled) {
  const nlohmann::ordered_json::json_pointer at("/aa/families_with_false_verdict");
  if (!other.contains(at) || !other.contains("run_id") || !other["run_id"].is_string()) return;
  const nlohmann::ordered_json& rate = other[at];
  const auto is_count = [&](const char* key) {
    return rate.is_object() && rate.contains(key) && rate[key].is_number_unsigned() &&
           rate[key] <= 1'000'000;
  };
  if (!is_count("count") || !is_count("of") || rate["count"] > rate["of"]) return;
  pooled->with_false_verdict += rate["count"].get<int64_t>();
  pooled->of += rate["of"].get<int64_t>();
  pooled->runs.push_back(other["run_id"].get<std::string>());
}

// The summaries that lie in a folder: those of the folders that were judged, and of all packs of
// runs, which are judged for it.
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

// The summaries of the records of its cache mode that lie beside the calibration at `path`: what
// was judged before. One that can't be read is no reason to withhold the calibration's page.
report::OtherRuns RunsBeside(const std::string& path, const nlohmann::ordered_json& calibration) {
  report::OtherRuns out;
  out.gate_tolerance = ablations::GateOptions{}.tolerance;
  const auto beside = std::filesystem::absolute(ablations::WithoutPackSuffix(path)) / "..";
  for (const auto& [file, json] : SummariesIn(beside.lexically_normal().string())) {
    if (!json.ok()) {
      std::fprintf(stderr, "warpledger: %s is left out: %s\n", file.c_str(),
                   std::string(json.status().message()).c_str());
      continue;
    }
    if (!json->is_object() || !json->contains("design")) continue;
    if (IsCalibration(*json)) {
      const bool another = json->contains("run_id") && (*json)["run_id"] != calibration["run_id"];
      const bool same_gpu = json->contains("gpu") && (*json)["gpu"] == calibration["gpu"];
      if (another && same_gpu) AddFamilies(*json, &out.families);
      continue;
    }
    absl::StatusOr<report::Summary> summary = report::ParseSummary(*json);
    if (!summary.ok()) {
      std::fprintf(stderr, "warpledger: %s is left out: %s\n", file.c_str(),
                   std::string(summary.status().message()).c_str());
      // Both sides JSON: GCC 13 finds no comparison of a string with nlohmann-json 3.11's.
    } else if (nlohmann::ordered_json(summary->gpu_slug) == calibration["gpu"] &&
               nlohmann::ordered_json(summary->provenance.cache) ==
                   calibration["provenance"]["cache"]) {
      out.summaries.push_back(*std::move(summary));
    }
  }
  report::PooledFamilies& pooled = out.families;
  if (!pooled.runs.empty()) {
    const nlohmann::ordered_json& own = calibration["aa"]["families_with_false_verdict"];
    pooled.with_false_verdict += own["count"].get<int64_t>();
    pooled.of += own["of"].get<int64_t>();
    pooled.bound = analysis::ClopperPearson(static_cast<int>(pooled.with_false_verdict),
                                            static_cast<int>(pooled.of), 0.90)
                       .high;
  }
  return out;
}

// Verdicts of a part of the plan are verdicts, but nobody should take them for
// those of the whole.
void WarnIfUnfinished(const nlohmann::ordered_json& summary) {
  const nlohmann::ordered_json& p = summary["provenance"];
  for (const auto& [what, prefix] : {std::pair{"", ""}, std::pair{" of the peers", "peer_"}}) {
    if (!p.contains(absl::StrCat(prefix, "blocks_planned"))) continue;
    const int64_t planned = p[absl::StrCat(prefix, "blocks_planned")].get<int64_t>();
    const int64_t missing = p[absl::StrCat(prefix, "blocks_missing")].get<int64_t>();
    if (missing == 0) continue;
    std::fprintf(
        stderr,
        "warpledger: this record is unfinished: %lld of %lld blocks%s; the same `warpledger "
        "run` measures the rest\n",
        static_cast<long long>(planned - missing), static_cast<long long>(planned), what);
  }
}

// Every figure of one summary, or the one that joins several.
absl::Status DrawPlots(const std::vector<std::string>& summary_files, const std::string& out) {
  const absl::StatusOr<std::string> script = ablations::FindProgramFile("plots/render.py");
  if (!script.ok()) return script.status();
  std::vector<std::string> command = {PythonInterpreter(), *script, "--out", out};
  for (const std::string& file : summary_files) {
    command.insert(command.end(), {"--summary", file});
  }
  const absl::Status status =
      ablations::RunLines(command, "", kPlotSilenceLimit, [](std::string_view line) {
        std::printf("%s\n", std::string(line).c_str());
        return absl::OkStatus();
      });
  if (status.ok()) return status;
  return absl::UnavailableError(absl::StrCat(
      "the report is written, the plots are not: ", status.message(),
      ". They need Python with matplotlib (requirements.txt): name it with --python, or pass "
      "--noplots"));
}

// The figures are drawn from what was just computed, not from a summary.json that
// may be older than the record.
absl::Status DrawSummaries(const std::vector<nlohmann::ordered_json>& summaries,
                           const std::string& out) {
  std::vector<std::string> files;
  absl::Status drawn;
  for (const nlohmann::ordered_json& summary : summaries) {
    files.push_back(absl::StrCat(out, "/.summary", files.size(), ".json"));
    drawn.Update(ablations::WriteFileAtomically(files.back(), ablations::DumpFile(summary)));
  }
  if (drawn.ok()) drawn = DrawPlots(files, out);
  for (const std::string& file : files) std::remove(file.c_str());
  return drawn;
}

absl::Status DrawSummary(const nlohmann::ordered_json& summary, const std::string& out) {
  RETURN_IF_ERROR(DrawSummaries({summary}, out));
  std::printf("Plots: %s/*.svg\n", out.c_str());
  return absl::OkStatus();
}

// What records are held against. A program without the file of its kernels' machine code goes by
// the hashes of its sources.
absl::StatusOr<report::RenderOptions> OptionsOfThisTree() {
  report::RenderOptions options = {.kernel_source_sha256 = kKernelSourceSha256,
                                   .registry_sha256 = kRegistrySha256};
  const absl::StatusOr<std::string> file = ablations::FindProgramFile(report::kTreeCodeFile);
  if (!file.ok()) return options;
  const absl::StatusOr<nlohmann::ordered_json> json = ReadJson(*file);
  if (!json.ok()) return json.status();
  absl::StatusOr<report::TreeCode> code = report::ParseTreeCode(*json);
  if (!code.ok()) return code.status();
  options.tree_code = *std::move(code);
  return options;
}

// Where --summary asks for it.
absl::Status WriteFlaggedSummary(const nlohmann::ordered_json& summary) {
  const std::string file = absl::GetFlag(FLAGS_summary);
  if (file.empty()) return absl::OkStatus();
  return ablations::WriteFileAtomically(file, ablations::DumpFile(summary));
}

absl::Status RefuseReadme(const char* what) {
  if (absl::GetFlag(FLAGS_readme).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--readme: a README shows a ladder, and this is ", what, "; leave it out"));
}

// The page of a profile record.
absl::StatusOr<int> ReportProfiles(const std::string& out) {
  RETURN_IF_ERROR(RefuseReadme("a record of profiles"));
  const absl::StatusOr<nlohmann::ordered_json> summary =
      ablations::SummarizeProfiles(absl::GetFlag(FLAGS_record), SummarizeRecord);
  if (!summary.ok()) return summary.status();
  RETURN_IF_ERROR(WriteFlaggedSummary(*summary));
  const absl::StatusOr<report::RenderOptions> options = OptionsOfThisTree();
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::string> text = report::RenderProfileReport(*summary, *options);
  if (!text.ok()) return text.status();
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const std::string file = absl::StrCat(out, "/", report::kProfileReportFile);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, *text));
  std::printf("Report: %s\n", file.c_str());
  if (absl::GetFlag(FLAGS_plots)) RETURN_IF_ERROR(DrawSummary(*summary, out));
  return kExitOk;
}

// The page of a study of data types.
absl::StatusOr<int> ReportDtypes(const std::string& out) {
  RETURN_IF_ERROR(RefuseReadme("a study of data types"));
  const std::string path = absl::GetFlag(FLAGS_record);
  const absl::StatusOr<std::string> text = ablations::ReadRecordFile(path, ablations::kDtypesFile);
  if (!text.ok()) return text.status();
  const absl::StatusOr<nlohmann::ordered_json> record =
      ParseFile(*text, absl::StrCat(path, "/", ablations::kDtypesFile));
  if (!record.ok()) return record.status();
  RETURN_IF_ERROR(WriteFlaggedSummary(*record));
  const absl::StatusOr<std::string> page = report::RenderDtypes(*record);
  if (!page.ok()) return page.status();
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const std::string file = absl::StrCat(out, "/", report::kDtypesReportFile);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, *page));
  std::printf("Report: %s\n", file.c_str());
  if (absl::GetFlag(FLAGS_plots)) RETURN_IF_ERROR(DrawSummary(*record, out));
  return kExitOk;
}

// Puts the text into the README's section of that name.
absl::Status RenewReadme(const std::string& readme, const char* section, const std::string& body) {
  absl::StatusOr<std::string> text = ablations::ReadFile(readme);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::string> renewed = report::ReplaceGeneratedSection(*text, section, body);
  if (!renewed.ok()) return renewed.status();
  RETURN_IF_ERROR(ablations::WriteFileAtomically(readme, *renewed));
  std::printf("Renewed the generated section %s of %s\n", section, readme.c_str());
  return absl::OkStatus();
}

// What goes before names of pages and pictures in a README.
std::string ReadmePrefix(const std::string& out) {
  const std::string pictures = absl::GetFlag(FLAGS_readme_pictures);
  return absl::StrCat(pictures.empty() ? out : pictures, "/");
}

// The summaries of all that --record names.
absl::StatusOr<std::vector<nlohmann::ordered_json>> ReadFlaggedSummaries() {
  const std::vector<std::string> paths =
      absl::StrSplit(absl::GetFlag(FLAGS_record), ',', absl::SkipEmpty());
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        "--record=DIR[,DIR..] is missing: records of one GPU that `warpledger judge` has judged");
  }
  std::vector<nlohmann::ordered_json> summaries;
  for (const std::string& path : paths) {
    absl::StatusOr<nlohmann::ordered_json> summary = ReadSummary(path);
    if (!summary.ok()) return summary.status();
    summaries.push_back(*std::move(summary));
  }
  return summaries;
}

}  // namespace

absl::StatusOr<int> JudgeCommand(absl::Span<const std::string> /*arguments*/) {
  absl::StatusOr<nlohmann::ordered_json> summary = SummarizeFlaggedRecord();
  if (!summary.ok()) return summary.status();
  std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    const absl::StatusOr<ablations::RecordFiles> files =
        ablations::RecordFiles::Open(absl::GetFlag(FLAGS_record));
    if (!files.ok()) return files.status();
    if (files->packed()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--out=FILE is missing: ", files->path(),
                       " is packed, and nothing is written into a pack"));
    }
    out = files->PathOf(ablations::kSummaryFile);
  }
  RETURN_IF_ERROR(ablations::WriteFileAtomically(out, ablations::DumpFile(*summary)));
  absl::StatusOr<std::string> table = IsCalibration(*summary)
                                          ? ablations::CalibrationTable(*summary)
                                          : ablations::VerdictTable(*summary);
  if (!table.ok()) return table.status();
  std::printf("%s\nSummary: %s\n", table->c_str(), out.c_str());
  WarnIfUnfinished(*summary);
  return kExitOk;
}

absl::StatusOr<int> ReportCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where report and plots go");
  }
  if (ablations::HasProfiles(absl::GetFlag(FLAGS_record))) return ReportProfiles(out);
  if (ablations::HasRecordFile(absl::GetFlag(FLAGS_record), ablations::kDtypesFile)) {
    return ReportDtypes(out);
  }
  absl::StatusOr<nlohmann::ordered_json> summary = SummarizeFlaggedRecord();
  if (!summary.ok()) return summary.status();
  RETURN_IF_ERROR(WriteFlaggedSummary(*summary));
  absl::StatusOr<report::RenderOptions> options = OptionsOfThisTree();
  if (!options.ok()) return options.status();
  absl::StatusOr<std::string> text =
      IsCalibration(*summary)
          ? report::RenderCalibration(*summary, *options,
                                      RunsBeside(absl::GetFlag(FLAGS_record), *summary))
          : report::RenderReport(*summary, *options);
  if (!text.ok()) return text.status();
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const std::string name =
      IsCalibration(*summary) ? "calibration" : (*summary)["design"].get<std::string>();
  const std::string file = absl::StrCat(
      out, "/", report::ReportFileName(name, (*summary)["provenance"]["cache"].get<std::string>()));
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, *text));
  std::printf("Report: %s\n", file.c_str());
  if (const std::string readme = absl::GetFlag(FLAGS_readme); !readme.empty()) {
    options->picture_prefix = ReadmePrefix(out);
    const absl::StatusOr<std::string> section = report::RenderReadmeSection(*summary, *options);
    if (!section.ok()) return section.status();
    RETURN_IF_ERROR(RenewReadme(readme, kLadderSection, *section));
  }
  if (absl::GetFlag(FLAGS_plots)) RETURN_IF_ERROR(DrawSummary(*summary, out));
  return kExitOk;
}

absl::StatusOr<int> TechniquesCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where the pages go");
  }
  const absl::StatusOr<std::vector<nlohmann::ordered_json>> summaries = ReadFlaggedSummaries();
  if (!summaries.ok()) return summaries.status();
  const absl::StatusOr<report::RenderOptions> options = OptionsOfThisTree();
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::vector<report::Page>> pages =
      report::RenderTechniques(*summaries, *options);
  if (!pages.ok()) return pages.status();
  for (const report::Page& page : *pages) {
    const std::string file = absl::StrCat(out, "/", page.path);
    RETURN_IF_ERROR(
        ablations::CreateDirectories(std::filesystem::path(file).parent_path().string()));
    RETURN_IF_ERROR(ablations::WriteFileAtomically(file, page.text));
  }
  std::printf("%zu pages: %s/%s\n", pages->size(), out.c_str(), pages->front().path.c_str());
  return kExitOk;
}

absl::StatusOr<int> StandingsCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where the page goes");
  }
  const absl::StatusOr<std::vector<nlohmann::ordered_json>> summaries = ReadFlaggedSummaries();
  if (!summaries.ok()) return summaries.status();
  absl::StatusOr<report::RenderOptions> options = OptionsOfThisTree();
  if (!options.ok()) return options.status();
  options->picture_prefix = ReadmePrefix(out);
  const absl::StatusOr<report::Standings> standings = report::RenderStandings(*summaries, *options);
  if (!standings.ok()) return standings.status();
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const std::string file = absl::StrCat(out, "/", report::kStandingsFile);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, standings->page));
  std::printf("Report: %s\n", file.c_str());
  if (const std::string readme = absl::GetFlag(FLAGS_readme); !readme.empty()) {
    RETURN_IF_ERROR(RenewReadme(readme, kStandingsSection, standings->readme));
  }
  if (standings->pictured.empty() || !absl::GetFlag(FLAGS_plots)) return kExitOk;
  std::vector<nlohmann::ordered_json> pictured;
  for (const size_t at : standings->pictured) pictured.push_back((*summaries)[at]);
  RETURN_IF_ERROR(DrawSummaries(pictured, out));
  return kExitOk;
}

}  // namespace warpledger::cli
