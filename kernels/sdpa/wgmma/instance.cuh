// Included by each generated translation unit of the wgmma family.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_

#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/launch_instance.h"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/wgmma/forward.cuh"
#include "kernels/sdpa/wgmma/tensor_maps.h"

// As in kernels/sdpa/instance.cuh. The counter of the dynamic schedule belongs to the
// instance: two launches of one instance must not overlap on a device.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                           \
  static constexpr Config symbol##_config = __VA_ARGS__;                                           \
  static_assert(symbol##_config.mask != Mask::kAtRunTime);                                         \
  static __device__ int symbol##_next_tile;                                                        \
  __global__ void __launch_bounds__(Threads(symbol##_config), 1)                                   \
      symbol(const __grid_constant__ WgmmaParamsOf<ShapeOf(symbol##_config)> params) {             \
    WgmmaForward<ShapeOf(symbol##_config)>(params);                                                \
  }                                                                                                \
  static cudaError_t Launch_##symbol(const ForwardParams& forward, unsigned,                       \
                                     cudaStream_t stream) {                                        \
    WgmmaParamsOf<ShapeOf(symbol##_config)> params;                                                \
    unsigned ctas = 0;                                                                             \
    cudaError_t error = PrepareWgmmaLaunch(forward, ShapeOf(symbol##_config), &params, &ctas);     \
    if (error != cudaSuccess) return error;                                                        \
    error = PrepareRest(forward, ShapeOf(symbol##_config), &params);                               \
    if (error != cudaSuccess) return error;                                                        \
    error = cudaGetSymbolAddress(reinterpret_cast<void**>(&params.next_tile), symbol##_next_tile); \
    if (error != cudaSuccess) return error;                                                        \
    return LaunchWgmma(reinterpret_cast<const void*>(&symbol), ShapeOf(symbol##_config), ctas,     \
                       &params, stream);                                                           \
  }                                                                                                \
  WARPLEDGER_DESCRIBE_INSTANCE(symbol)

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
