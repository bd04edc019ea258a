// SPDX-License-Identifier: Apache-2.0
// `warpledger merge`: the records of a fleet, ready to be judged, pooled and packed.

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include "ablations/cli/archive/merge_records.h"
#include "ablations/cli/flags.h"
#include "ablations/record/record_files.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct MergeFlags : FlagSet {
  Flag<std::string> fleet{this, "fleet", "", "the folder that `warpledger fleet` wrote"};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<bool> partial{this, "partial", false, "write what fits, and name the rest"};
};

absl::StatusOr<int> Merge(const MergeFlags& flags) {
  RETURN_IF_ERROR(flags.fleet.Needed("DIR is missing: what `warpledger fleet` wrote"));
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the records go"));
  const std::string fleet = ablations::WithoutPackSuffix(*flags.fleet);
  const std::string out = ablations::WithoutPackSuffix(*flags.out);
  ASSIGN_OR_RETURN(
      const ablations::Merged merged,
      ablations::MergeFleet(fleet, out, {.partial = *flags.partial, .argv = CommandLine()}));
  std::set<std::string> boards;
  for (const auto& record : merged.records) {
    boards.insert(record.board);
    absl::PrintF("%s: %s", record.path, record.board);
    if (record.parts.size() > 1) absl::PrintF(", %d shards", record.parts.size());
    absl::PrintF("\n");
  }
  for (const std::string& note : merged.left_out) absl::PrintF("left out: %s\n", note);
  for (const std::string& misfit : merged.misfits) {
    absl::FPrintF(stderr, "warpledger: %s\n", misfit);
  }
  if (merged.records.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(fleet, ": nothing is written",
                                                      merged.misfits.empty() ? ": it has no task"
                                                      : *flags.partial
                                                          ? ": no record is whole"
                                                          : "; --partial takes what fits"));
  }
  absl::PrintF("%d records of %d boards. Next: warpledger pool --record=%s\n",
               merged.records.size(), boards.size(),
               std::filesystem::path(merged.records[0].path).parent_path().string());
  return merged.misfits.empty() ? kExitOk : kExitFinding;
}

}  // namespace

Command MergeCommand() {
  return Runs(
      &Merge,
      {.name = "merge",
       .arguments = "--fleet=DIR --out=DIR [--partial]",
       .summary = "Joins the records of a fleet, and names what does not fit",
       .details = "Writes packs, OUT/<gpu>/<run>.tar.zst: for each board one record of the shards "
                  "that it measured, or several\nif it measured a shard twice. Names each record "
                  "that is damaged, unfinished, or of another task, design, seed or\nbuild; then "
                  "the exit code is 1, and nothing is written unless --partial is given."});
}

}  // namespace warpledger::cli
