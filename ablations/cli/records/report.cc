// SPDX-License-Identifier: Apache-2.0
// `warpledger report`: the page of a record, from the record alone.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "ablations/cli/flags.h"
#include "ablations/cli/records/pages.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/judge/compare/gate.h"
#include "ablations/judge/profile_summary.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/stats/proportion.h"
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "reports/model/describe.h"
#include "reports/model/summary_view.h"
#include "reports/pages/calibration.h"
#include "reports/pages/dtypes.h"
#include "reports/pages/profile.h"
#include "reports/pages/render.h"

namespace warpledger::cli {
namespace {

struct ReportFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> summary{this, "summary", "", "also write here what `judge` writes"};
  Flag<bool> plots{this, "plots", true, kPlotsHelp};
  PythonFlag python{this};
  ReadmeFlags readme{this};
};

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

// The summaries of the records of its cache mode that lie beside the calibration at `path`: what
// was judged before. One that can't be read is no reason to withhold the calibration's page.
report::OtherRuns RunsBeside(const std::string& path, const nlohmann::ordered_json& calibration) {
  report::OtherRuns out;
  out.gate_tolerance = ablations::GateOptions{}.tolerance;
  const auto beside = std::filesystem::absolute(ablations::WithoutPackSuffix(path)) / "..";
  for (const auto& [file, json] : SummariesIn(beside.lexically_normal().string())) {
    if (!json.ok()) {
      absl::FPrintF(stderr, "warpledger: %s is left out: %s\n", file, json.status().message());
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
      absl::FPrintF(stderr, "warpledger: %s is left out: %s\n", file, summary.status().message());
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

// What a kind of record is made into.
struct Rendered {
  nlohmann::ordered_json summary;
  std::string file;  // the page's name
  absl::StatusOr<std::string> page;
  const char* no_readme = nullptr;  // what it is, where no README shows it
};

absl::StatusOr<Rendered> RenderProfiles(const std::string& record,
                                        const report::RenderOptions& options) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json summary,
                   ablations::SummarizeProfiles(record, ablations::SdpaSubject(), SummarizeRecord));
  return Rendered{summary, report::kProfileReportFile,
                  report::RenderProfileReport(summary, options), "a record of profiles"};
}

absl::StatusOr<Rendered> RenderDtypes(const std::string& record) {
  ASSIGN_OR_RETURN(const std::string text,
                   ablations::ReadRecordFile(record, ablations::kDtypesFile));
  ASSIGN_OR_RETURN(const nlohmann::ordered_json study,
                   ParseFile(text, absl::StrCat(record, "/", ablations::kDtypesFile)));
  return Rendered{study, report::kDtypesReportFile, report::RenderDtypes(study),
                  "a study of data types"};
}

absl::StatusOr<Rendered> RenderRun(const std::string& record,
                                   const report::RenderOptions& options) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json summary, SummarizeRecord(record));
  const bool calibration = IsCalibration(summary);
  const std::string name = calibration ? "calibration" : summary["design"].get<std::string>();
  return Rendered{
      summary, report::ReportFileName(name, summary["provenance"]["cache"].get<std::string>()),
      calibration ? report::RenderCalibration(summary, options, RunsBeside(record, summary))
                  : report::RenderReport(summary, options)};
}

absl::StatusOr<int> Report(const ReportFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where report and plots go"));
  RETURN_IF_ERROR(flags.record.Needed(kRecordOrPackMissing));
  const std::string& out = *flags.out;
  const std::string& record = *flags.record;
  ASSIGN_OR_RETURN(report::RenderOptions options, OptionsOfThisTree());
  ASSIGN_OR_RETURN(const Rendered rendered,
                   ablations::HasProfiles(record) ? RenderProfiles(record, options)
                   : ablations::HasRecordFile(record, ablations::kDtypesFile)
                       ? RenderDtypes(record)
                       : RenderRun(record, options));
  if (flags.readme.readme.given && rendered.no_readme != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--readme: a README shows a ladder, and this is ", rendered.no_readme, "; leave it out"));
  }
  RETURN_IF_ERROR(WriteIfAsked(flags.summary, ablations::DumpFile(rendered.summary)));
  if (!rendered.page.ok()) return rendered.page.status();
  const std::string file = absl::StrCat(out, "/", rendered.file);
  RETURN_IF_ERROR(WritePage(file, *rendered.page));
  absl::PrintF("Report: %s\n", file);
  if (flags.readme.readme.given) {
    options.picture_prefix = flags.readme.Prefix(out);
    ASSIGN_OR_RETURN(const std::string section,
                     report::RenderReadmeSection(rendered.summary, options));
    RETURN_IF_ERROR(flags.readme.Renew("ladder", section));
  }
  if (!*flags.plots) return kExitOk;
  RETURN_IF_ERROR(DrawSummaries({rendered.summary}, flags.python.Interpreter(), out));
  absl::PrintF("Plots: %s/*.svg\n", out);
  return kExitOk;
}

}  // namespace

Command ReportCommand() {
  return Runs(&Report, {.name = "report",
                        .arguments = "--record=DIR --out=DIR [flags]",
                        .summary = "Turns a record into a Markdown report and plots"});
}

}  // namespace warpledger::cli
