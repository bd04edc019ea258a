// SPDX-License-Identifier: Apache-2.0
// `warpledger report`: the page of a record, from the record alone.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ablations/cli/flags.h"
#include "ablations/cli/records/pages.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/profile.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/stats/distributions.h"
#include "ablations/summary/calibration.h"
#include "ablations/summary/compared.h"
#include "ablations/summary/summary.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "reports/model/describe.h"
#include "reports/pages/pages.h"

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

// Adds the A/A families of another calibration.
void AddFamilies(const summary::CalibrationSummary& other, report::PooledFamilies* pooled) {
  pooled->with_false_verdict += other.aa.families_with_false_verdict.count;
  pooled->of += other.aa.families_with_false_verdict.of;
  pooled->runs.push_back(other.run_id);
}

// The summaries of the records of its cache mode that lie beside the calibration at `path`. One
// that can't be judged is no reason to withhold the calibration's page.
report::OtherRuns RunsBeside(const std::string& path,
                             const summary::CalibrationSummary& calibration) {
  report::OtherRuns out;
  out.gate_tolerance = summary::GateOptions{}.tolerance;
  const auto leave_out = [](const std::string& file, const absl::Status& status) {
    absl::FPrintF(stderr, "warpledger: %s is left out: %s\n", file, status.message());
  };
  const auto beside = std::filesystem::absolute(ablations::WithoutPackSuffix(path)) / "..";
  for (auto& [file, read] : SummariesIn(beside.lexically_normal().string())) {
    if (!read.ok()) {
      leave_out(file, read.status());
    } else if (const auto* other = std::get_if<summary::CalibrationSummary>(&*read)) {
      if (other->run_id != calibration.run_id && other->gpu == calibration.gpu) {
        AddFamilies(*other, &out.families);
      }
    } else if (absl::StatusOr<report::Summary> summary =
                   ViewOf(std::get<summary::Summary>(*std::move(read)));
               !summary.ok()) {
      leave_out(file, summary.status());
    } else if (summary->gpu == calibration.gpu &&
               summary->subject->name() == ablations::kFirstSubject &&
               summary->provenance.cache == calibration.provenance.run.cache) {
      out.summaries.push_back(*std::move(summary));
    }
  }
  if (report::PooledFamilies& pooled = out.families; !pooled.runs.empty()) {
    const summary::Rate& own = calibration.aa.families_with_false_verdict;
    pooled.with_false_verdict += own.count;
    pooled.of += own.of;
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
  const char* no_readme = nullptr;                    // what it is, where no README shows it
  std::optional<report::Summary> run = std::nullopt;  // where one may
};

absl::StatusOr<Rendered> RenderProfiles(const std::string& record,
                                        const report::RenderOptions& options) {
  ASSIGN_OR_RETURN(const ablations::ProfileRecord profiles, ablations::LoadProfiles(record));
  const std::string& name = profiles.info.subject;
  ASSIGN_OR_RETURN(const ablations::Subject* subject,
                   ablations::FindSubject(name.empty() ? ablations::kFirstSubject : name,
                                          profiles.info.definition));
  ASSIGN_OR_RETURN(const summary::ProfileSummary summary,
                   ablations::SummarizeProfiles(record, *subject, &SummarizeRun));
  return Rendered{ablations::ToJson(summary), report::kProfileReportFile,
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
  ASSIGN_OR_RETURN(RecordSummary summary, SummarizeRecord(record));
  nlohmann::ordered_json json = JsonOf(summary);
  if (const auto* calibration = std::get_if<summary::CalibrationSummary>(&summary)) {
    return Rendered{
        std::move(json), report::ReportFileName("calibration", calibration->provenance.run.cache),
        report::RenderCalibration(*calibration, options, RunsBeside(record, *calibration)),
        "a calibration"};
  }
  ASSIGN_OR_RETURN(report::Summary view, ViewOf(std::get<summary::Summary>(std::move(summary))));
  return Rendered{std::move(json), report::ReportFileName(view),
                  report::RenderReport(view, options), nullptr, std::move(view)};
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
  if (flags.readme.readme.given && !rendered.run) {
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
                     report::RenderReadmeSection(*rendered.run, options));
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
