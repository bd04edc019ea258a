// SPDX-License-Identifier: Apache-2.0
// `warpledger pack` and `unpack`: a finished record as one file, and as a folder again.

#include <cstdio>
#include <string>

#include "ablations/cli/close_record.h"
#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

absl::Status CheckRecords(absl::Span<const std::string> records, const char* command) {
  if (records.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no record is named: warpledger ", command, " RECORD.."));
  }
  if (records.size() > 1 && !absl::GetFlag(FLAGS_out).empty()) {
    return absl::InvalidArgumentError("--out names one place, so it takes one record");
  }
  return absl::OkStatus();
}

double Mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

absl::StatusOr<int> PackCommand(absl::Span<const std::string> records) {
  RETURN_IF_ERROR(CheckRecords(records, "pack"));
  for (const std::string& record : records) {
    const absl::StatusOr<ablations::PackResult> packed =
        ablations::PackRecord(record, {.out = absl::GetFlag(FLAGS_out),
                                       .keep = absl::GetFlag(FLAGS_keep),
                                       .unfinished = absl::GetFlag(FLAGS_unfinished)});
    if (!packed.ok()) return packed.status();
    std::printf("%s: %zu files, %.2f MiB -> %.3f MiB\n", packed->path.c_str(), packed->files,
                Mib(packed->plain_bytes), Mib(packed->packed_bytes));
    std::fflush(stdout);
  }
  return kExitOk;
}

absl::StatusOr<int> UnpackCommand(absl::Span<const std::string> records) {
  RETURN_IF_ERROR(CheckRecords(records, "unpack"));
  for (const std::string& record : records) {
    const absl::StatusOr<ablations::PackResult> unpacked =
        ablations::UnpackRecord(record, absl::GetFlag(FLAGS_out));
    if (!unpacked.ok()) return unpacked.status();
    std::printf("%s: %zu files as SHA256SUMS says, %.2f MiB\n", unpacked->path.c_str(),
                unpacked->files, Mib(unpacked->plain_bytes));
    std::fflush(stdout);
  }
  return kExitOk;
}

}  // namespace warpledger::cli
