// SPDX-License-Identifier: Apache-2.0
// The grid of a launch of the resident family.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_LAUNCH_H_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/shared/forward_params.h"

namespace warpledger::sdpa {

// CTAs of a launch in x, y and z: query tiles times the cluster, query heads per K/V
// head, K/V heads. No division in the kernel's prologue.
dim3 ResidentGrid(const ForwardParams& forward, const ResidentShape& shape);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_LAUNCH_H_
