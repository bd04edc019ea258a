// SPDX-License-Identifier: Apache-2.0
// Counters of kernels, beside the times and ceilings that explain them.

#pragma once

#include <functional>
#include <string>

#include "ablations/plan/subject.h"
#include "ablations/summary/profile.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// What the report and the pictures of a profile record read: the profiles with
// the times of the newest record beside `dir` that timed the same machine code on
// the same kind of GPU, the newest microbenchmarks of it there as ceilings, and which
// profiles are one step apart. Records beside it that can't be read are skipped
// and named in `skipped`.
//   summary_of: the summary of the run at a path; null: judges it
using SummaryOf = std::function<absl::StatusOr<summary::Summary>(const std::string& path)>;
absl::StatusOr<summary::ProfileSummary> SummarizeProfiles(const std::string& path,
                                                          const Subject& subject,
                                                          const SummaryOf& summary_of = nullptr);

}  // namespace warpledger::ablations
