// SPDX-License-Identifier: Apache-2.0
// `warpledger techniques`: a page per technique, from all designs of a GPU.

#include "reports/techniques.h"

#include <cstdio>
#include <vector>

#include "ablations/cli/flags.h"
#include "ablations/cli/records/pages.h"
#include "ablations/cli/records/summaries.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct TechniquesFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
};

absl::StatusOr<int> Techniques(const TechniquesFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the pages go"));
  const absl::StatusOr<std::vector<nlohmann::ordered_json>> summaries = ReadSummaries(flags.record);
  if (!summaries.ok()) return summaries.status();
  const absl::StatusOr<report::RenderOptions> options = OptionsOfThisTree();
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::vector<report::Page>> pages =
      report::RenderTechniques(*summaries, *options);
  if (!pages.ok()) return pages.status();
  for (const report::Page& page : *pages) {
    RETURN_IF_ERROR(WritePage(absl::StrCat(*flags.out, "/", page.path), page.text));
  }
  std::printf("%zu pages: %s/%s\n", pages->size(), flags.out->c_str(), pages->front().path.c_str());
  return kExitOk;
}

}  // namespace

Command TechniquesCommand() {
  return {.name = "techniques",
          .arguments = "--record=DIR[,DIR..] --out=DIR",
          .summary = "Writes a page per technique: what every design says of it",
          .details =
              "Reads the summary.json of each record. All are of one GPU, at most one of each "
              "design. Writes\nDIR/techniques.md and DIR/techniques/TOGGLE.md.",
          .run = &Techniques};
}

}  // namespace warpledger::cli
