// SPDX-License-Identifier: Apache-2.0
// Included by each generated source file of the wgmma family.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_

#include "kernels/sdpa/wgmma/forward.cuh"
#include "kernels/sdpa/wgmma/params.h"

// As in kernels/sdpa/smem/instance.cuh. The workspace belongs to the instance: two launches of one
// instance that uses it must not overlap on a device. The host finds it by its name.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                           \
  static constexpr Config symbol##_config = __VA_ARGS__;                                           \
  static_assert(symbol##_config.mask != Mask::kAtRunTime);                                         \
  extern "C" __device__ __align__(                                                                 \
      16) unsigned char symbol##_workspace[WorkspaceOf(WgmmaShapeOf(symbol##_config)).bytes] = {}; \
  __global__ void __launch_bounds__(Threads(WgmmaShapeOf(symbol##_config)), 1)                     \
      symbol(const __grid_constant__ WgmmaParamsOf<WgmmaShapeOf(symbol##_config)> params) {        \
    WgmmaForward<WgmmaShapeOf(symbol##_config)>(params);                                           \
  }

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
