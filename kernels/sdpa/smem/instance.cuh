// SPDX-License-Identifier: Apache-2.0
// Included by each generated source file, which defines the kernel of one instance.
//
// Such a file is compiled for the device alone (cmake/kernel_instances.cmake). The host knows the
// instance by the generated table (kernel_instance.h) and loads its code at run time.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_INSTANCE_CUH_

#include "kernels/sdpa/smem/forward.cuh"
#include "kernels/sdpa/smem/shape.h"

// Defines the kernel `symbol` for one configuration.
#define WARPLEDGER_INSTANCE(symbol, ...)                                 \
  static constexpr Config symbol##_config = __VA_ARGS__;                 \
  __global__ void __launch_bounds__(smem::Threads(symbol##_config),      \
                                    smem::MinCtasPerSm(symbol##_config)) \
      symbol(const __grid_constant__ ForwardParams params) {             \
    extern __shared__ __align__(32) unsigned char smem_bytes[];          \
    smem::SdpaForward<symbol##_config>(params, smem_bytes);              \
  }

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_INSTANCE_CUH_
