// SPDX-License-Identifier: Apache-2.0
// `warpledger pack`: finished records, each as one file.

#include <cstdio>

#include "ablations/cli/archive/close_record.h"
#include "ablations/cli/flags.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct PackFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<bool> keep{this, "keep", false, "leave the folder where it is"};
  Flag<bool> unfinished{this, "unfinished", false, "pack a record that lacks blocks, as it is"};
};

absl::StatusOr<int> Pack(const PackFlags& flags) {
  RETURN_IF_ERROR(ablations::CheckNamed(flags.arguments, *flags.out, "pack"));
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

}  // namespace

Command PackCommand() {
  return Runs(
      &Pack,
      {.name = "pack",
       .arguments = "RECORD.. [--out=FILE.tar.zst] [--keep] [--unfinished]",
       .summary = "Closes finished records: each folder becomes one compressed, verified file",
       .details =
           "Writes RECORD.tar.zst, reads it back, and removes the folder unless --keep is "
           "given. summary.json is\nleft out: `judge` writes it for any record. All commands "
           "read packs as they read folders.\nOpens anywhere: tar --zstd -xf RUN.tar.zst && cd "
           "RUN && sha256sum -c SHA256SUMS",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
