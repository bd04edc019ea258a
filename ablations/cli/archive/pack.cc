// SPDX-License-Identifier: Apache-2.0
// `warpledger pack`: finished records, each as one file; and `unpack`: each as a folder again.

#include <cstdio>
#include <string>
#include <vector>

#include "ablations/cli/archive/close_record.h"
#include "ablations/cli/flags.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct PackFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<bool> keep{this, "keep", false, "leave the folder where it is"};
  Flag<bool> unfinished{this, "unfinished", false, "pack a record that lacks blocks, as it is"};
};

struct UnpackFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
};

// Whether `command` was called for a record, and for one alone where --out names its place.
absl::Status CheckNamed(const std::vector<std::string>& records, const std::string& out,
                        const char* command) {
  if (records.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no record is named: warpledger ", command, " RECORD.."));
  }
  if (records.size() == 1 || out.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--out names one place, so it takes one record");
}

absl::StatusOr<int> Pack(const PackFlags& flags) {
  RETURN_IF_ERROR(CheckNamed(flags.arguments, *flags.out, "pack"));
  for (const std::string& record : flags.arguments) {
    ASSIGN_OR_RETURN(
        const ablations::PackResult packed,
        ablations::PackRecord(
            record, {.out = *flags.out, .keep = *flags.keep, .unfinished = *flags.unfinished}));
    absl::PrintF("%s: %d files, %.2f MiB -> %.3f MiB\n", packed.path, packed.files,
                 packed.plain_mib(), packed.packed_mib());
    std::fflush(stdout);
  }
  return kExitOk;
}

absl::StatusOr<int> Unpack(const UnpackFlags& flags) {
  RETURN_IF_ERROR(CheckNamed(flags.arguments, *flags.out, "unpack"));
  for (const std::string& record : flags.arguments) {
    ASSIGN_OR_RETURN(const ablations::PackResult unpacked,
                     ablations::UnpackRecord(record, *flags.out));
    absl::PrintF("%s: %d files as SHA256SUMS says, %.2f MiB\n", unpacked.path, unpacked.files,
                 unpacked.plain_mib());
    std::fflush(stdout);
  }
  return kExitOk;
}

}  // namespace

Command PackCommand() {
  return Runs(
      &Pack,
      {.name = "pack",
       .arguments = "RECORD.. [--out=FILE.tar.zst] [--keep] [--unfinished]",
       .summary = "Closes finished records: each folder becomes one compressed, verified file",
       .details =
           "Writes RECORD.tar.zst, reads it back, and removes the folder unless --keep is "
           "given. The pack has no\nsummary.json; `judge` writes it for any record. All commands "
           "read packs as they read folders.\nStandard tools open a pack: reports/RECORD.md has "
           "the commands.",
       .takes_arguments = true});
}

Command UnpackCommand() {
  return Runs(
      &Unpack,
      {.name = "unpack",
       .arguments = "RECORD.tar.zst.. [--out=DIR]",
       .summary = "Turns a packed record into a folder again, after checking every sum",
       .details =
           "The pack stays. If both exist, commands that look for records take the folder, because "
           "`run` may have\ncontinued in it. Remove the pack before you pack a folder that "
           "changed.",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
