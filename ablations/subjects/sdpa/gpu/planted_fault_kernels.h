// SPDX-License-Identifier: Apache-2.0
// The kernels that commit the faults of planted_faults.h.

#pragma once

#include <cuda_runtime_api.h>

#include "ablations/subjects/sdpa/fault.h"

namespace warpledger::ablations {

// A kernel of one thread that commits `fault`. `behind_output` is the first byte
// behind an output.
//
//   RETURN_IF_CUDA_ERROR(LaunchPlantedFault(Fault::kTrap, nullptr, stream), "planting a fault");
cudaError_t LaunchPlantedFault(Fault fault, void* behind_output, cudaStream_t stream);

}  // namespace warpledger::ablations
