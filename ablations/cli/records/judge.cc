// SPDX-License-Identifier: Apache-2.0
// `warpledger judge`: verdicts from a record alone, without a GPU.

#include <cstdint>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/judge/calibration_summary.h"
#include "ablations/judge/verdict_table.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct JudgeFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> out{this, "out", "", kOutHelp};
};

// Verdicts of a part of the plan are verdicts, but nobody should take them for
// those of the whole.
void WarnIfUnfinished(const nlohmann::ordered_json& summary) {
  const nlohmann::ordered_json& p = summary["provenance"];
  for (const auto& [what, prefix] : {std::pair{"", ""}, std::pair{" of the peers", "peer_"}}) {
    if (!p.contains(absl::StrCat(prefix, "blocks_planned"))) continue;
    const int64_t planned = p[absl::StrCat(prefix, "blocks_planned")].get<int64_t>();
    const int64_t missing = p[absl::StrCat(prefix, "blocks_missing")].get<int64_t>();
    if (missing == 0) continue;
    absl::FPrintF(stderr,
                  "warpledger: this record is unfinished: %d of %d blocks%s; the same `warpledger "
                  "run` measures the rest\n",
                  planned - missing, planned, what);
  }
}

absl::StatusOr<int> Judge(const JudgeFlags& flags) {
  RETURN_IF_ERROR(flags.record.Needed(kRecordOrPackMissing));
  ASSIGN_OR_RETURN(const nlohmann::ordered_json summary, SummarizeRecord(*flags.record));
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
  RETURN_IF_ERROR(WriteOutput(out, ablations::DumpFile(summary)));
  ASSIGN_OR_RETURN(const std::string table, IsCalibration(summary)
                                                ? ablations::CalibrationTable(summary)
                                                : ablations::VerdictTable(summary));
  absl::PrintF("%s\nSummary: %s\n", table, out);
  WarnIfUnfinished(summary);
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
           "--out: nothing is written\ninto a pack. Everywhere a record's DIR may be a pack, "
           "DIR.tar.zst, and stands for it where the folder is absent."});
}

}  // namespace warpledger::cli
