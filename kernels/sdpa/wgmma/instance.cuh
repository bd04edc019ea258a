// Included by each generated translation unit of the wgmma family.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_

#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/launch_instance.h"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/wgmma/forward.cuh"
#include "kernels/sdpa/wgmma/tensor_maps.h"

namespace warpledger::sdpa {

// An instance's own global memory: what outlives a CTA. Counters are 0 between launches.
template <WgmmaShape kShape>
struct WgmmaWorkspace {
  int next_tile;

  // From a pointer to device memory; nothing is read.
  void AddTo(WgmmaParams* params) { params->next_tile = &next_tile; }
};

template <WgmmaShape kShape>
requires(kShape.split_kv) struct WgmmaWorkspace<kShape> {
  // None where parts lie in shared memory.
  static constexpr int kRows = kShape.cluster_join ? 1 : kMaxWgmmaPartials * TileM(kShape);

  float4 partial_out[kRows * kShape.head_dim / 4];
  float2 partial_stats[kRows];
  int arrivals[kMaxWgmmaPartials];

  void AddTo(WgmmaDecodeParams* params) {
    params->partial_out = partial_out;
    params->partial_stats = partial_stats;
    params->arrivals = arrivals;
  }
};

}  // namespace warpledger::sdpa

// As in kernels/sdpa/instance.cuh. The workspace belongs to the instance: two launches of one
// instance that uses it must not overlap on a device.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                       \
  static constexpr Config symbol##_config = __VA_ARGS__;                                       \
  static_assert(symbol##_config.mask != Mask::kAtRunTime);                                     \
  static __device__ WgmmaWorkspace<ShapeOf(symbol##_config)> symbol##_workspace;               \
  __global__ void __launch_bounds__(Threads(symbol##_config), 1)                               \
      symbol(const __grid_constant__ WgmmaParamsOf<ShapeOf(symbol##_config)> params) {         \
    WgmmaForward<ShapeOf(symbol##_config)>(params);                                            \
  }                                                                                            \
  static cudaError_t Launch_##symbol(const ForwardParams& forward, unsigned,                   \
                                     cudaStream_t stream) {                                    \
    WgmmaParamsOf<ShapeOf(symbol##_config)> params;                                            \
    unsigned ctas = 0;                                                                         \
    cudaError_t error = PrepareWgmmaLaunch(forward, ShapeOf(symbol##_config), &params, &ctas); \
    if (error != cudaSuccess) return error;                                                    \
    error = PrepareRest(forward, ShapeOf(symbol##_config), &params, &ctas);                    \
    if (error != cudaSuccess) return error;                                                    \
    WgmmaWorkspace<ShapeOf(symbol##_config)>* workspace = nullptr;                             \
    error = cudaGetSymbolAddress(reinterpret_cast<void**>(&workspace), symbol##_workspace);    \
    if (error != cudaSuccess) return error;                                                    \
    workspace->AddTo(&params);                                                                 \
    const WgmmaShape shape = ShapeOf(symbol##_config);                                         \
    const auto* kernel = reinterpret_cast<const void*>(&symbol);                               \
    error = PlaceClusters(kernel, shape, &params, &ctas);                                      \
    if (error != cudaSuccess) return error;                                                    \
    error = LaunchWgmma(kernel, shape, ctas, ClusterOf(shape, params), &params, stream);       \
    if (error != cudaSuccess) return error;                                                    \
    return LaunchBehind(params, ShapeOf(symbol##_config), stream);                             \
  }                                                                                            \
  WARPLEDGER_DESCRIBE_INSTANCE(symbol)

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_INSTANCE_CUH_
