// SPDX-License-Identifier: Apache-2.0
// Included by each generated source file of the mma family.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_

#include "kernels/sdpa/mma/forward.cuh"
#include "kernels/sdpa/mma/params.h"

// As in kernels/sdpa/smem/instance.cuh. The workspace belongs to the instance: two launches of one
// instance that uses it must not overlap on a device. The host finds it by its name.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                   \
  static constexpr Config symbol##_config = __VA_ARGS__;                                   \
  static constexpr MmaShape symbol##_shape = MmaShapeOf(symbol##_config);                  \
  extern "C" __device__ __align__(                                                         \
      16) unsigned char symbol##_workspace[OwnWorkspaceBytes(symbol##_shape)] = {};        \
  __global__ void __launch_bounds__(Threads(symbol##_shape), MinCtasPerSm(symbol##_shape)) \
      symbol(const __grid_constant__ MmaParamsOf<symbol##_shape> params) {                 \
    extern __shared__ __align__(128) unsigned char mma_smem[];                             \
    MmaForward<symbol##_shape>(params, mma_smem);                                          \
  }

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_
