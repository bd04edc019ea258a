// SPDX-License-Identifier: Apache-2.0
// `warpledger worker`: a job on standard input, its samples on standard output.

#include "ablations/measure/worker.h"

#include <iostream>
#include <iterator>
#include <string>

#include "ablations/cli/measure/run.h"
#include "ablations/cli/subjects.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::StatusOr<int> Work(const FlagSet& /*flags*/) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  ASSIGN_OR_RETURN(ablations::WorkerJob job, ablations::FromText<ablations::WorkerJob>(text));
  ASSIGN_OR_RETURN(const ablations::Subject* subject, FindSubject(job.subject));
  ASSIGN_OR_RETURN(const Device device, OpenDevice(*subject));
  RETURN_IF_ERROR(ablations::RunWorker(job, *subject, *device.rig, *device.machine));
  return kExitOk;
}

}  // namespace warpledger::cli
