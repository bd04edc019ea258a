// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/measure/run.h"

#include <utility>

#include "ablations/base/files.h"
#include "ablations/cli/measure/run_request.h"
#include "ablations/measure/run.h"
#include "ablations/plan/known_subjects.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::Status Measure(RunRequest request, const ablations::Device& device) {
  request.options.worker = request.subject->Worker();
  if (request.options.worker.empty()) {
    request.options.worker = {ablations::ExecutablePath(), "worker"};
  }
  return ablations::RunDesign(request.options, *request.subject, *device.rig, *device.machine);
}

absl::StatusOr<int> Run(const RunFlags& flags) {
  ASSIGN_OR_RETURN(RunRequest request, RunRequestOf(flags));
  if (*flags.dry_run) return DryRun(request, *flags.record);
  RETURN_IF_ERROR(CheckReleaseBuild());
  RETURN_IF_ERROR(CheckCompiled(request));
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(*request.subject));
  RETURN_IF_ERROR(Measure(std::move(request), device));
  absl::PrintF("Record: %s\nNext: warpledger judge --record=%s\n", *flags.out, *flags.out);
  return kExitOk;
}

}  // namespace warpledger::cli
