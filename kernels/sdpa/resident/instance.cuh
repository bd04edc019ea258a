// SPDX-License-Identifier: Apache-2.0
// Included by each generated source file of the resident family.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_INSTANCE_CUH_

#include "kernels/sdpa/resident/forward.cuh"

// As in kernels/sdpa/smem/instance.cuh.
#define WARPLEDGER_INSTANCE(symbol, ...)                                          \
  static constexpr Config symbol##_config = __VA_ARGS__;                          \
  static_assert(symbol##_config.mask != Mask::kAtRunTime);                        \
  __global__ void __launch_bounds__(Threads(ResidentShapeOf(symbol##_config)), 1) \
      symbol(const __grid_constant__ WgmmaParams params) {                        \
    ResidentForward<ResidentShapeOf(symbol##_config)>(params);                    \
  }

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_INSTANCE_CUH_
