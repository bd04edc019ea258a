// SPDX-License-Identifier: Apache-2.0
// `warpledger worker`: a job on standard input, its samples on standard output.

#include "ablations/measure/worker.h"

#include <iostream>
#include <iterator>
#include <string>

#include "ablations/cli/measure/run.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::StatusOr<int> Work(const FlagSet& /*flags*/) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  ASSIGN_OR_RETURN(ablations::WorkerJob job, ablations::FromText<ablations::WorkerJob>(text));
  RETURN_IF_ERROR(ablations::RunWorker(job));
  return kExitOk;
}

}  // namespace warpledger::cli
