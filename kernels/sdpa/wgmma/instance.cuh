// Included by each generated translation unit of the wgmma family.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_

#include "kernels/sdpa/launch_instance.h"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/wgmma/forward.cuh"
#include "kernels/sdpa/wgmma/tensor_maps.h"

// As WARPLEDGER_SDPA_INSTANCE. The counter of the dynamic schedule belongs to the
// instance: two launches of one instance must not overlap on a device.
#define WARPLEDGER_WGMMA_INSTANCE(symbol, ...)                                                     \
  static constexpr Config symbol##_config = __VA_ARGS__;                                           \
  static_assert(!WhyInvalid(symbol##_config));                                                     \
  static __device__ int symbol##_next_tile;                                                        \
  __global__ void __launch_bounds__(Threads(symbol##_config), 1)                                   \
      symbol(const __grid_constant__ WgmmaParams params) {                                         \
    WgmmaForward<ShapeOf(symbol##_config)>(params);                                                \
  }                                                                                                \
  static cudaError_t Launch_##symbol(const ForwardParams& forward, unsigned,                       \
                                     cudaStream_t stream) {                                        \
    WgmmaParams params;                                                                            \
    unsigned ctas = 0;                                                                             \
    cudaError_t error = PrepareWgmmaLaunch(forward, ShapeOf(symbol##_config), &params, &ctas);     \
    if (error != cudaSuccess) return error;                                                        \
    error = cudaGetSymbolAddress(reinterpret_cast<void**>(&params.next_tile), symbol##_next_tile); \
    if (error != cudaSuccess) return error;                                                        \
    symbol<<<ctas, Threads(symbol##_config), SmemBytes(symbol##_config), stream>>>(params);        \
    return cudaGetLastError();                                                                     \
  }                                                                                                \
  const KernelInstance& Get_##symbol() {                                                           \
    static const KernelInstance instance = {.config = symbol##_config,                             \
                                            .kernel = reinterpret_cast<const void*>(&symbol),      \
                                            .launch = &Launch_##symbol};                           \
    return instance;                                                                               \
  }

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
