// SPDX-License-Identifier: Apache-2.0
// `warpledger standings`: the fastest kernels beside their peers, from all designs of a GPU.

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ablations/cli/flags.h"
#include "ablations/cli/records/pages.h"
#include "ablations/cli/records/summaries.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "reports/pages/pages.h"

namespace warpledger::cli {
namespace {

struct StandingsFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<bool> plots{this, "plots", true, kPlotsHelp};
  PythonFlag python{this};
  ReadmeFlags readme{this};
  Flag<std::string> alone{this, "alone", "",
                          "records of contenders alone on another GPU, whose ratio the README has "
                          "first; their pages lie in a folder of its slug beside this GPU's"};
};

// The sentence on contenders alone, of the records of another GPU.
absl::StatusOr<std::string> AloneElsewhere(const StandingsFlags& flags,
                                           report::RenderOptions options) {
  ASSIGN_OR_RETURN(const std::vector<summary::Summary> summaries, SummarizeRuns(flags.alone));
  ASSIGN_OR_RETURN(std::vector<report::Summary> views, ViewsOf(summaries));
  const std::filesystem::path pages(options.picture_prefix);
  options.picture_prefix =
      (pages.parent_path().parent_path() / summaries.front().gpu / "").string();
  ASSIGN_OR_RETURN(report::Standings standings, report::RenderStandings(std::move(views), options));
  if (standings.readme_alone.empty()) {
    return absl::InvalidArgumentError("--alone: none of these records has contenders alone");
  }
  return standings.readme_alone;
}

absl::StatusOr<int> Standings(const StandingsFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the page goes"));
  if (flags.alone.given && !flags.readme.readme.given) {
    return absl::InvalidArgumentError("--alone: the README has it, and --readme is not given");
  }
  const std::string& out = *flags.out;
  ASSIGN_OR_RETURN(std::vector<summary::Summary> summaries, SummarizeRuns(flags.record));
  ASSIGN_OR_RETURN(report::RenderOptions options, OptionsOfThisTree());
  options.picture_prefix = flags.readme.Prefix(out);
  ASSIGN_OR_RETURN(std::vector<report::Summary> views, ViewsOf(summaries));
  ASSIGN_OR_RETURN(const report::Standings standings,
                   report::RenderStandings(std::move(views), options));
  const std::string file = absl::StrCat(out, "/", report::kStandingsFile);
  RETURN_IF_ERROR(WritePage(file, standings.page));
  absl::PrintF("Report: %s\n", file);
  if (flags.readme.readme.given) {
    std::string alone = standings.readme_alone;
    if (flags.alone.given) {
      ASSIGN_OR_RETURN(alone, AloneElsewhere(flags, options));
    }
    RETURN_IF_ERROR(flags.readme.Renew(
        "standings", absl::StrCat(standings.readme_picture, alone, standings.readme_rest)));
  }
  if (standings.pictured.empty() || !*flags.plots) return kExitOk;
  std::vector<nlohmann::ordered_json> pictured;
  for (const size_t at : standings.pictured) pictured.push_back(ablations::ToJson(summaries[at]));
  RETURN_IF_ERROR(DrawSummaries(pictured, flags.python.Interpreter(), out, /*joined=*/true));
  return kExitOk;
}

}  // namespace

Command StandingsCommand() {
  return Runs(&Standings,
              {.name = "standings",
               .arguments = "--record=DIR[,DIR..] --out=DIR [flags]",
               .summary = "Compares the fastest kernels with their peers, over all designs",
               .details = "Judges each record. All records must be of one GPU, with at most one "
                          "record per design. "
                          "Writes\nDIR/standings.md, and DIR/throughput.svg if a record has a "
                          "series of lengths in "
                          "fp16."});
}

}  // namespace warpledger::cli
