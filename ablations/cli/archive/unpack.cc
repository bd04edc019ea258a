// SPDX-License-Identifier: Apache-2.0
// `warpledger unpack`: a packed record as a folder again.

#include <cstdio>

#include "ablations/cli/archive/close_record.h"
#include "ablations/cli/flags.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct UnpackFlags : FlagSet {
  Flag<std::string> out{this, "out", "", kOutHelp};
};

absl::StatusOr<int> Unpack(const UnpackFlags& flags) {
  RETURN_IF_ERROR(ablations::CheckNamed(flags.arguments, *flags.out, "unpack"));
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

Command UnpackCommand() {
  return Runs(
      &Unpack,
      {.name = "unpack",
       .arguments = "RECORD.tar.zst.. [--out=DIR]",
       .summary = "Makes a folder of a packed record again, after every sum was checked",
       .details =
           "The pack stays. Where both are there, commands that look for records take the "
           "folder, as `run` may have\ngone on in it. Remove the pack before you pack a folder "
           "that changed.",
       .takes_arguments = true});
}

}  // namespace warpledger::cli
