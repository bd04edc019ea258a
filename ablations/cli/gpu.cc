// SPDX-License-Identifier: Apache-2.0
// The GPU on which attention and studies are measured.

#include "ablations/measure/cuda_machine.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/subjects/sdpa/gpu/sdpa_rig.h"
#include "ablations/subjects/sdpa/subject.h"
#include "ablations/subjects/study/rig/gpu/cuda_memory.h"
#include "ablations/subjects/study/rig/study_rig.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

absl::StatusOr<Device> OpenGpu() {
  ASSIGN_OR_RETURN(auto machine, OpenCudaMachine());
  ASSIGN_OR_RETURN(auto rig, OpenSdpaRig());
  return Device{std::move(machine), std::move(rig)};
}
WARPLEDGER_SUBJECT(SdpaSubject, OpenGpu);

absl::StatusOr<std::shared_ptr<Machine>> StudyMachine() {
  ASSIGN_OR_RETURN(auto machine, OpenCudaMachine());
  return machine;
}
[[maybe_unused]] const bool kStudiesHaveAGpu = [] {
  SetStudyGpu({&StudyMachine, &CudaMemory});
  return true;
}();

}  // namespace
}  // namespace warpledger::ablations
