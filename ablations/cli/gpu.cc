// SPDX-License-Identifier: Apache-2.0
// The GPU on which attention is measured.

#include "ablations/cli/subjects.h"
#include "ablations/measure/cuda_machine.h"
#include "ablations/subjects/sdpa/gpu/sdpa_rig.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

absl::StatusOr<Device> OpenGpu() {
  ASSIGN_OR_RETURN(auto machine, ablations::OpenCudaMachine());
  ASSIGN_OR_RETURN(auto rig, ablations::OpenSdpaRig());
  return Device{std::move(machine), std::move(rig)};
}

}  // namespace warpledger::cli
