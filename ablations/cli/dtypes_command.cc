// SPDX-License-Identifier: Apache-2.0
// `warpledger dtypes`: what K and V in fewer bits cost in accuracy. Needs no GPU.

#include <cstdio>

#include "ablations/base/files.h"
#include "ablations/base/paths.h"
#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::StatusOr<int> DtypesCommand(absl::Span<const std::string> /*arguments*/) {
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out=DIR is missing: where the record goes");
  }
  ablations::StudyOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.max_seq = absl::GetFlag(FLAGS_max_seq);
  if (options.max_seq < 64 || options.max_seq > 1 << 18) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_seq=", options.max_seq, ": it is 64 to 262144"));
  }
  const absl::Time now = absl::Now();
  nlohmann::ordered_json record = ablations::StudyDtypes(options, [](std::string_view line) {
    std::fprintf(stderr, "%s\n", std::string(line).c_str());
  });
  record["run_id"] = absl::FormatTime("dtypes-%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  record["created_utc"] = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  record["argv"] = nlohmann::ordered_json::array();
  for (const std::string& argument : CommandLine()) record["argv"].push_back(argument);
  RETURN_IF_ERROR(ablations::CreateDirectories(out));
  const std::string file = absl::StrCat(out, "/", ablations::kDtypesFile);
  RETURN_IF_ERROR(ablations::WriteFileAtomically(file, ablations::DumpFile(record)));
  std::printf("Record: %s\nNext: warpledger report --record=%s --out=%s\n", file.c_str(),
              out.c_str(), out.c_str());
  return kExitOk;
}

}  // namespace warpledger::cli
