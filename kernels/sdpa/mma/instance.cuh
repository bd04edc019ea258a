// Included by each generated translation unit of the mma family.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_

#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/launch_instance.h"
#include "kernels/sdpa/mma/forward.cuh"
#include "kernels/sdpa/mma/prepare_launch.h"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

// An instance's own global memory: what outlives a CTA. Counters are 0 between
// launches.
template <MmaShape kShape>
struct MmaWorkspace {
  static constexpr int kPartials = kShape.split_kv ? kMaxPartials : 1;
  static constexpr int kRows = kPartials * TileM(kShape);

  float4 partial_out[kRows * kShape.head_dim / 4];
  float2 partial_stats[kRows];
  int arrivals[kPartials];
  int next_tile;

  // From a pointer to device memory; nothing is read.
  void AddTo(MmaParams* params) {
    params->partial_out = reinterpret_cast<float*>(partial_out);
    params->partial_stats = reinterpret_cast<float*>(partial_stats);
    params->arrivals = arrivals;
    params->next_tile = &next_tile;
  }
};

// As in kernels/sdpa/instance.cuh. The workspace belongs to the instance: two
// launches of one instance that uses it must not overlap on a device.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                    \
  static constexpr Config symbol##_config = __VA_ARGS__;                                    \
  static constexpr MmaShape symbol##_shape = MmaShapeOf(symbol##_config);                   \
  static __device__ MmaWorkspace<symbol##_shape> symbol##_workspace;                        \
  __global__ void __launch_bounds__(Threads(symbol##_shape), MinCtasPerSm(symbol##_shape))  \
      symbol(const __grid_constant__ MmaParams params) {                                    \
    extern __shared__ __align__(128) unsigned char mma_smem[];                              \
    MmaForward<symbol##_shape>(params, mma_smem);                                           \
  }                                                                                         \
  static cudaError_t Launch_##symbol(const ForwardParams& forward, unsigned,                \
                                     cudaStream_t stream) {                                 \
    MmaParams params;                                                                       \
    unsigned ctas = 0;                                                                      \
    cudaError_t error = PrepareMmaLaunch(forward, symbol##_shape, &params, &ctas);          \
    if (error != cudaSuccess) return error;                                                 \
    MmaWorkspace<symbol##_shape>* workspace = nullptr;                                      \
    error = cudaGetSymbolAddress(reinterpret_cast<void**>(&workspace), symbol##_workspace); \
    if (error != cudaSuccess) return error;                                                 \
    workspace->AddTo(&params);                                                              \
    return LaunchMma(params, symbol##_shape, ctas, reinterpret_cast<const void*>(&symbol),  \
                     stream);                                                               \
  }                                                                                         \
  WARPLEDGER_DESCRIBE_INSTANCE(symbol)

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_INSTANCE_CUH_
