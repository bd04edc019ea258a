// SPDX-License-Identifier: Apache-2.0
// `warpledger techniques`: a page per technique, from all designs of a GPU.

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

struct TechniquesFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> claims{this, "claims", "",
                           "also write every verdict as a row of JSON into this file, for scripts "
                           "and reports/explorer.py"};
  ReadmeFlags readme{this};
};

absl::StatusOr<int> Techniques(const TechniquesFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the pages go"));
  ASSIGN_OR_RETURN(std::vector<summary::Summary> summaries, SummarizeRuns(flags.record));
  ASSIGN_OR_RETURN(report::RenderOptions options, OptionsOfThisTree());
  options.picture_prefix = flags.readme.Prefix(*flags.out);
  ASSIGN_OR_RETURN(std::vector<report::Summary> views, ViewsOf(std::move(summaries)));
  ASSIGN_OR_RETURN(const report::Techniques techniques,
                   report::RenderTechniques(std::move(views), options));
  const std::vector<report::Page>& pages = techniques.pages;
  for (const report::Page& page : pages) {
    RETURN_IF_ERROR(WritePage(absl::StrCat(*flags.out, "/", page.path), page.text));
  }
  absl::PrintF("%d pages: %s/%s\n", pages.size(), *flags.out, pages.front().path);
  RETURN_IF_ERROR(WriteIfAsked(flags.claims, techniques.claim_table));
  if (flags.readme.readme.given) {
    RETURN_IF_ERROR(flags.readme.Renew("techniques", techniques.readme));
  }
  return kExitOk;
}

}  // namespace

Command TechniquesCommand() {
  return Runs(
      &Techniques,
      {.name = "techniques",
       .arguments = "--record=DIR[,DIR..] --out=DIR [flags]",
       .summary = "Writes a page per technique and per claim, with the verdicts of every design",
       .details = "Judges each record. All records must be of one GPU, with at most one record per "
                  "design. Writes\nDIR/README.md with questions and answers, DIR/techniques.md, "
                  "DIR/techniques/TECHNIQUE.md and DIR/claims/CLAIM.md."});
}

}  // namespace warpledger::cli
