// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/records/pages.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/json_text.h"
#include "ablations/base/subprocess.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/plan/known_subjects.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"
#include "reports/model/options.h"
#include "warpledger_source_hashes.h"

namespace warpledger::cli {
namespace {

constexpr absl::Duration kPlotSilenceLimit = absl::Minutes(5);

// As plots/render.py ends where matplotlib is missing.
constexpr int kNoMatplotlib = 3;

}  // namespace

// Through a pipe: a file would stay where this process is killed.
absl::Status DrawSummaries(const std::vector<nlohmann::ordered_json>& summaries,
                           const std::string& python, const std::string& out, bool joined) {
  ASSIGN_OR_RETURN(const std::string script, ablations::FindProgramFile("plots/render.py"));
  std::vector<std::string> command = {python, script, "--out", out, "--summary", "-"};
  if (joined) command.emplace_back("--joined");
  std::string lines;
  for (const nlohmann::ordered_json& summary : summaries) {
    absl::StrAppend(&lines, ablations::DumpLine(summary), "\n");
  }
  ablations::ProcessEnd end;
  const absl::Status status = ablations::RunLines(
      command, lines, [] { return kPlotSilenceLimit; },
      [](std::string_view line) {
        absl::PrintF("%s\n", line);
        return absl::OkStatus();
      },
      &end);
  if (status.ok()) return status;
  const bool lacks_python = absl::IsNotFound(status) || end.exit_code == kNoMatplotlib;
  return absl::Status(
      lacks_python ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal,
      absl::StrCat("the report is written, the plots are not: ", status.message(),
                   lacks_python ? ". They need Python with matplotlib (requirements.txt): name it "
                                  "with --python, or pass --noplots"
                                : ". It says why above"));
}

absl::Status ReadmeFlags::Renew(const char* section, const std::string& body) const {
  ASSIGN_OR_RETURN(std::string text, ablations::ReadFile(*readme));
  ASSIGN_OR_RETURN(std::string renewed, report::ReplaceGeneratedSection(text, section, body));
  RETURN_IF_ERROR(WriteOutput(*readme, renewed));
  absl::PrintF("Renewed the generated section %s of %s\n", section, *readme);
  return absl::OkStatus();
}

absl::StatusOr<report::RenderOptions> OptionsOfThisTree() {
  report::RenderOptions options = {.kernel_source_sha256 = kKernelSourceSha256,
                                   .registry_sha256 = kRegistrySha256};
  const absl::StatusOr<std::string> file = ablations::FindProgramFile(report::kTreeCodeFile);
  if (!file.ok()) return options;
  ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJson(*file));
  ASSIGN_OR_RETURN(options.tree_code, report::ParseTreeCode(json));
  return options;
}

absl::StatusOr<report::Summary> ViewOf(summary::Summary summary) {
  ASSIGN_OR_RETURN(const ablations::Subject* subject, ablations::SubjectOf(summary.provenance));
  return report::ViewOf(std::move(summary), *subject);
}

absl::StatusOr<std::vector<report::Summary>> ViewsOf(std::vector<summary::Summary> summaries) {
  std::vector<report::Summary> views;
  for (summary::Summary& summary : summaries) {
    ASSIGN_OR_RETURN(report::Summary view, ViewOf(std::move(summary)));
    views.push_back(std::move(view));
  }
  return views;
}

absl::Status WritePage(const std::string& file, const std::string& text) {
  RETURN_IF_ERROR(ablations::CreateDirectories(std::filesystem::path(file).parent_path().string()));
  return WriteOutput(file, text);
}

}  // namespace warpledger::cli
