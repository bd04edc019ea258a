// SPDX-License-Identifier: Apache-2.0
// The GPU on which attention is measured.

#include "ablations/measure/cuda_machine.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/subjects/sdpa/gpu/sdpa_rig.h"
#include "ablations/subjects/sdpa/subject.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

absl::StatusOr<Device> OpenGpu() {
  ASSIGN_OR_RETURN(auto machine, OpenCudaMachine());
  ASSIGN_OR_RETURN(auto rig, OpenSdpaRig());
  return Device{std::move(machine), std::move(rig)};
}
WARPLEDGER_SUBJECT(SdpaSubject, OpenGpu);

}  // namespace
}  // namespace warpledger::ablations
