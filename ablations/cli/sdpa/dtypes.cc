// SPDX-License-Identifier: Apache-2.0
// `warpledger dtypes`: what K and V in fewer bits cost in accuracy. Needs no GPU.

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct DtypesFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<uint64_t> seed{this, "seed", 1, kSeedHelp};
  Flag<int> max_seq{this, "max_seq", 16384, "the largest number of keys"};
};

absl::StatusOr<int> Dtypes(const DtypesFlags& flags) {
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  const std::string& out = *flags.out;
  const ablations::StudyOptions options = {.seed = *flags.seed, .max_seq = *flags.max_seq};
  if (options.max_seq < 64 || options.max_seq > 1 << 18) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_seq=", options.max_seq, ": it is 64 to 262144"));
  }
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const absl::Time now = absl::Now();
  nlohmann::ordered_json record = ablations::StudyDtypes(
      options, [](std::string_view line) { absl::FPrintF(stderr, "%s\n", line); });
  record["run_id"] = absl::FormatTime("dtypes-%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  record["created_utc"] = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  record["argv"] = CommandLine();
  const std::string file = absl::StrCat(out, "/", ablations::kDtypesFile);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, ablations::DumpFile(record)));
  absl::PrintF("Record: %s\nNext: warpledger report --record=%s --out=%s\n", file, out, out);
  return kExitOk;
}

}  // namespace

Command DtypesCommand() {
  return Runs(
      &Dtypes,
      {.name = "dtypes",
       .arguments = "--out=DIR [--seed=N] [--max_seq=N]",
       .summary = "Computes the error that K and V in 8 bits cause (on the CPU)",
       .details =
           "Computes the error of O against the number of keys, 64 to --max_seq, for uint8, E4M3, "
           "E5M2 and bf16 with scales\nper tensor, head and block, and shows which mistakes give "
           "NaN. Takes about two minutes. `report` makes the page."});
}

}  // namespace warpledger::cli
