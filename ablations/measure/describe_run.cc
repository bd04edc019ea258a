// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/describe_run.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "warpledger_build_info.h"
#include "warpledger_git_info.h"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {

void DescribeNow(const std::string& what, RunInfo* run) {
  const absl::Time now = absl::Now();
  run->created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  run->run_id =
      absl::StrCat(what, "-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
}

void DescribeBuild(RunInfo* run) {
  run->git = {kGitSha, kGitDirty};
  run->registry_sha256 = kRegistrySha256;
  run->kernel_source_sha256 = kKernelSourceSha256;
  run->protocol_sha256 = WARPLEDGER_PROTOCOL_SHA256;
  run->toolchain = {build_info::kNvcc, build_info::kHostCompiler, build_info::kBuildType,
                    build_info::kCudaFlags, build_info::kCudaArchitectures};
}

}  // namespace warpledger::ablations
