// SPDX-License-Identifier: Apache-2.0
// The GPU on which attention is measured, and the kernels that this build has for it.

#include "ablations/cli/measure/run_request.h"
#include "ablations/cli/subjects.h"
#include "ablations/measure/cuda_machine.h"
#include "ablations/subjects/sdpa/gpu/sdpa_rig.h"
#include "absl/algorithm/container.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/launch/launch.h"

namespace warpledger::cli {

absl::StatusOr<Device> OpenGpu() {
  ASSIGN_OR_RETURN(auto machine, ablations::OpenCudaMachine());
  ASSIGN_OR_RETURN(auto rig, ablations::OpenSdpaRig());
  return Device{std::move(machine), std::move(rig)};
}

HoldsKernel KernelsOfThisBuild() {
  return [](const sdpa::Config& config) {
    return absl::c_any_of(sdpa::AllInstances(), [&](const sdpa::KernelInstance* instance) {
      return instance->config == config;
    });
  };
}

}  // namespace warpledger::cli
