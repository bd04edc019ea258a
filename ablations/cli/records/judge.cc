// SPDX-License-Identifier: Apache-2.0
// `warpledger judge`: verdicts from a record alone, without a GPU.

#include <cstdint>
#include <variant>

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "reports/pages/pages.h"

namespace warpledger::cli {
namespace {

struct JudgeFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
};

// Verdicts of a part of the plan are verdicts, but nobody should take them for
// those of the whole.
void WarnIfUnfinished(int64_t missing, int64_t planned, const char* of_whom) {
  if (missing == 0) return;
  absl::FPrintF(stderr,
                "warpledger: this record is unfinished: %d of %d blocks%s; the same `warpledger "
                "run` measures the rest\n",
                planned - missing, planned, of_whom);
}

absl::StatusOr<int> Judge(const JudgeFlags& flags) {
  RETURN_IF_ERROR(flags.record.Needed(kRecordOrPackMissing));
  ASSIGN_OR_RETURN(const RecordSummary summary, SummarizeRecord(*flags.record));
  std::string out = *flags.out;
  if (!flags.out.given) {
    ASSIGN_OR_RETURN(const ablations::RecordFiles files,
                     ablations::RecordFiles::Open(*flags.record));
    if (files.packed()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--out=FILE is missing: ", files.path(),
                       " is packed, and nothing is written into a pack"));
    }
    out = files.PathOf(ablations::kSummaryFile);
  }
  RETURN_IF_ERROR(WriteOutput(out, ablations::DumpFile(JsonOf(summary))));
  const auto* run = std::get_if<summary::Summary>(&summary);
  absl::PrintF("%s\nSummary: %s\n",
               run != nullptr
                   ? report::VerdictTable(*run)
                   : report::CalibrationTable(std::get<summary::CalibrationSummary>(summary)),
               out);
  std::visit(
      [](const auto& each) {
        WarnIfUnfinished(each.provenance.blocks_missing, each.provenance.blocks_planned, "");
      },
      summary);
  if (run != nullptr) {
    WarnIfUnfinished(run->provenance.peer_blocks_missing, run->provenance.peer_blocks_planned,
                     " of the peers");
  }
  return kExitOk;
}

}  // namespace

Command JudgeCommand() {
  return Runs(
      &Judge,
      {.name = "judge",
       .arguments = "--record=DIR [--out=FILE]",
       .summary = "Turns a record into verdicts: summary.json and a table",
       .details =
           "Writes DIR/summary.json unless --out names another file. A packed record needs "
           "--out, because nothing is written\ninto a pack. In all commands DIR may be a pack, "
           "DIR.tar.zst; DIR also finds that pack if the folder is absent."});
}

}  // namespace warpledger::cli
