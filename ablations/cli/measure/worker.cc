// SPDX-License-Identifier: Apache-2.0
// `warpledger worker`: a job on standard input, its samples on standard output.

#include "ablations/measure/worker.h"

#include <iostream>
#include <iterator>
#include <string>

#include "ablations/cli/measure/run.h"
#include "ablations/plan/known_subjects.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::StatusOr<int> Work(const FlagSet& /*flags*/) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  ASSIGN_OR_RETURN(ablations::WorkerJob job, ablations::FromText<ablations::WorkerJob>(text));
  ASSIGN_OR_RETURN(const ablations::Subject* subject,
                   ablations::FindSubject(job.subject, job.definition));
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(*subject));
  RETURN_IF_ERROR(ablations::RunWorker(job, *subject, *device.rig, *device.machine));
  return kExitOk;
}

}  // namespace warpledger::cli
