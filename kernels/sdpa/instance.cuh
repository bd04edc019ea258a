// Included by each generated translation unit, which defines one instance.

#ifndef WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_
#define WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_

#include "kernels/sdpa/forward.cuh"
#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/launch_instance.h"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

// Lowers `ctas` to as many as the device holds at once, for a persistent kernel.
inline cudaError_t LimitToResident(const Config& config, const void* kernel, unsigned* ctas) {
  if (config.persistent == 0) return cudaSuccess;
  int device = 0;
  int sms = 0;
  int ctas_per_sm = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas_per_sm, kernel, Threads(config),
                                                        SmemBytes(config));
  if (error != cudaSuccess) return error;
  const auto resident = static_cast<unsigned>(sms * ctas_per_sm);
  if (*ctas > resident) *ctas = resident;
  return cudaSuccess;
}

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
    const cudaError_t error =                                                                \
        LimitToResident(symbol##_config, reinterpret_cast<const void*>(&symbol), &ctas);     \
    if (error != cudaSuccess) return error;                                                  \
    symbol<<<ctas, Threads(symbol##_config), SmemBytes(symbol##_config), stream>>>(params);  \
    return cudaGetLastError();                                                               \
  }                                                                                          \
  WARPLEDGER_DESCRIBE_INSTANCE(symbol)

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_INSTANCE_CUH_
