// SPDX-License-Identifier: Apache-2.0
// The current GPU's memory.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_STUDY_RIG_GPU_CUDA_MEMORY_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_STUDY_RIG_GPU_CUDA_MEMORY_H_

#include <memory>

#include "ablations/subjects/study/rig/memory.h"

namespace warpledger::ablations {

std::shared_ptr<const Memory> CudaMemory();

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_STUDY_RIG_GPU_CUDA_MEMORY_H_
