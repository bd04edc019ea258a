// SPDX-License-Identifier: Apache-2.0
// `warpledger run --dry_run`: what a run would take and what its record holds.

#pragma once

#include "ablations/cli/measure/run_request.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

// Prints it, refused where a run would be; needs no GPU and writes nothing. `earlier`: a record
// whose times the estimate goes by; may be empty. Returns the exit code: kExitFinding when a
// build with CUDA lacks a kernel.
absl::StatusOr<int> DryRun(const RunRequest& request, const std::string& earlier);

}  // namespace warpledger::cli
