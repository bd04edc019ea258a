// SPDX-License-Identifier: Apache-2.0
// `warpledger pool`: what records of several boards say of a board of their kind, without a GPU.

#include "ablations/judge/compare/pool.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "ablations/cli/flags.h"
#include "ablations/cli/records/summaries.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "reports/compared/compared.h"

namespace warpledger::cli {
namespace {

struct PoolFlags : FlagSet {
  Flag<std::string> record{this, "record", "",
                           "records, comma-separated: directories or packs, or folders of them"};
  Flag<bool> leave_one_out{this, "leave_one_out", false,
                           "instead leave out each board in turn, and count how often the interval "
                           "for another board contains the result of the left-out board"};
  Flag<double> confidence{this, "confidence", ablations::PoolOptions{}.confidence,
                          "of the intervals; that on which a verdict rests is wider where not all "
                          "of its claim is decided"};
  FormatFlag format{this};
  Flag<std::string> out{this, "out", "", kOutHelp};
};

// Calibrations in a folder are passed over: they judge no claim.
absl::Status AppendSummaries(const std::string& path, std::vector<summary::Summary>& summaries) {
  std::error_code error;
  const bool is_folder_of_records = std::filesystem::is_directory(path, error) &&
                                    !ablations::HasRecordFile(path, ablations::kRunFile) &&
                                    !ablations::RecordsIn(path).empty();
  if (!is_folder_of_records) {
    ASSIGN_OR_RETURN(summaries.emplace_back(), SummarizeRun(path));
    return absl::OkStatus();
  }
  for (auto& [record, summary] : SummariesIn(path)) {
    RETURN_IF_ERROR(summary.status());
    if (auto* of_run = std::get_if<summary::Summary>(&*summary)) {
      summaries.push_back(std::move(*of_run));
    }
  }
  return absl::OkStatus();
}

template <typename Result>
absl::StatusOr<int> Show(const PoolFlags& flags, const absl::StatusOr<Result>& result,
                         std::string (*text_of)(const Result&)) {
  RETURN_IF_ERROR(result.status());
  ASSIGN_OR_RETURN(const bool wants_json, flags.format.WantsJson());
  const std::string json = ablations::DumpFile(ablations::ToJson(*result));
  RETURN_IF_ERROR(WriteIfAsked(flags.out, json));
  std::fputs((wants_json ? json : text_of(*result)).c_str(), stdout);
  return kExitOk;
}

absl::StatusOr<int> Pool(const PoolFlags& flags) {
  RETURN_IF_ERROR(flags.format.WantsJson().status());
  RETURN_IF_ERROR(flags.record.Needed("DIR[,DIR..] is missing: records, or folders of records"));
  if (!(*flags.confidence > 0 && *flags.confidence < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--confidence=", *flags.confidence, ": it is between 0 and 1"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, NamesIn(flags.record));
  std::vector<summary::Summary> summaries;
  for (const std::string& path : paths) RETURN_IF_ERROR(AppendSummaries(path, summaries));
  const ablations::PoolOptions options = {.confidence = *flags.confidence};
  if (*flags.leave_one_out) {
    return Show(flags, ablations::LeaveOneBoardOut(summaries, options), &report::CoverageText);
  }
  return Show(flags, ablations::Pool(summaries, options), &report::PooledText);
}

}  // namespace

Command PoolCommand() {
  return Runs(
      &Pool,
      {.name = "pool",
       .arguments = "--record=DIR[,DIR..] [--leave_one_out] [--format=json] [--out=FILE.json]",
       .summary = "Pools records of several boards into verdicts for boards of that kind",
       .details =
           "Pools comparisons with the same machine code of both arms, on the same problem and "
           "kind "
           "of GPU; kinds of GPU\nare never mixed. The verdict rests on the interval for another "
           "board, which the table shows at the level of\nthe claim's family. One record is "
           "enough: the spread between boards then comes from the ledger. --out writes\n"
           "everything as JSON, with the boards of each comparison."});
}

}  // namespace warpledger::cli
