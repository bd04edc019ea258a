// SPDX-License-Identifier: Apache-2.0
// `warpledger standings`: the fastest kernels beside their peers, from all designs of a GPU.

#include <cstddef>
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
};

absl::StatusOr<int> Standings(const StandingsFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the page goes"));
  const std::string& out = *flags.out;
  ASSIGN_OR_RETURN(std::vector<summary::Summary> summaries, ReadSummaries(flags.record));
  ASSIGN_OR_RETURN(report::RenderOptions options, OptionsOfThisTree());
  options.picture_prefix = flags.readme.Prefix(out);
  ASSIGN_OR_RETURN(std::vector<report::Summary> views, ViewsOf(summaries));
  ASSIGN_OR_RETURN(const report::Standings standings,
                   report::RenderStandings(std::move(views), options));
  const std::string file = absl::StrCat(out, "/", report::kStandingsFile);
  RETURN_IF_ERROR(WritePage(file, standings.page));
  absl::PrintF("Report: %s\n", file);
  if (flags.readme.readme.given) {
    RETURN_IF_ERROR(flags.readme.Renew("standings", standings.readme));
  }
  if (standings.pictured.empty() || !*flags.plots) return kExitOk;
  std::vector<nlohmann::ordered_json> pictured;
  for (const size_t at : standings.pictured) pictured.push_back(ablations::ToJson(summaries[at]));
  RETURN_IF_ERROR(DrawSummaries(pictured, flags.python.Interpreter(), out, /*joined=*/true));
  return kExitOk;
}

}  // namespace

Command StandingsCommand() {
  return Runs(
      &Standings,
      {.name = "standings",
       .arguments = "--record=DIR[,DIR..] --out=DIR [flags]",
       .summary = "Writes where the fastest kernels stand beside their peers, over all designs",
       .details =
           "Reads the summary.json of each record. All are of one GPU, at most one of each "
           "design. Writes\nDIR/standings.md, and DIR/throughput.svg where some record has a "
           "series of lengths in fp16."});
}

}  // namespace warpledger::cli
