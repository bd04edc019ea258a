// SPDX-License-Identifier: Apache-2.0
// `warpledger run --dry_run`: what a run would take and what its record holds.

#ifndef WARPLEDGER_ABLATIONS_CLI_MEASURE_DRY_RUN_H_
#define WARPLEDGER_ABLATIONS_CLI_MEASURE_DRY_RUN_H_

#include "ablations/cli/measure/run_request.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

// Prints it from the flags of `run`, refused where a run would refuse them; needs no
// GPU and writes nothing. `holds` says whether this build has a kernel; empty: it is
// one without CUDA. Returns the exit code: kExitFinding when a build with CUDA lacks
// a kernel.
absl::StatusOr<int> DryRun(const RunFlags& flags, const HoldsKernel& holds);

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_MEASURE_DRY_RUN_H_
