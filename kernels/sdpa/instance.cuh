// Included by each generated translation unit, which defines one instance.

#ifndef WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_

#include "kernels/sdpa/forward.cuh"
#include "kernels/sdpa/launch_instance.h"

namespace warpledger::sdpa {

// Defines the kernel `symbol` for one configuration and a function
// `Get_<symbol>` that describes it. The __global__ function is no template:
// nvcc 13.0's host stubs can't name one whose parameter is of class type.
#define WARPLEDGER_INSTANCE(symbol, ...)                                                     \
  static constexpr Config symbol##_config = __VA_ARGS__;                                     \
  __global__ void __launch_bounds__(Threads(symbol##_config), MinCtasPerSm(symbol##_config)) \
      symbol(const __grid_constant__ ForwardParams params) {                                 \
    SdpaForward<symbol##_config>(params);                                                    \
  }                                                                                          \
  static cudaError_t Launch_##symbol(const ForwardParams& params, unsigned ctas,             \
                                     cudaStream_t stream) {                                  \
    symbol<<<ctas, Threads(symbol##_config), SmemBytes(symbol##_config), stream>>>(params);  \
    return cudaGetLastError();                                                               \
  }                                                                                          \
  WARPLEDGER_DESCRIBE_INSTANCE(symbol)

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_
