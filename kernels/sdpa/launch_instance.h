// One compiled kernel instance. Apart from launch.h so that the generated
// translation units, compiled by nvcc for each architecture, stay free of Abseil.

#ifndef WARPLEDGER_KERNELS_SDPA_LAUNCH_INSTANCE_H_
#define WARPLEDGER_KERNELS_SDPA_LAUNCH_INSTANCE_H_

#include <cuda_runtime_api.h>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/forward_params.h"

namespace warpledger::sdpa {

struct KernelInstance {
  Config config;                 // specialised: see Specialise
  const void* kernel = nullptr;  // host handle, for attributes and occupancy
  cudaError_t (*launch)(const ForwardParams& params, unsigned ctas, cudaStream_t stream) = nullptr;
};

// Defines `Get_<symbol>`, which describes the instance whose kernel is `symbol`, whose
// configuration is `symbol`_config and whose launch is Launch_`symbol`.
#define WARPLEDGER_DESCRIBE_INSTANCE(symbol)                                                  \
  const KernelInstance& Get_##symbol() {                                                      \
    static const KernelInstance instance = {.config = symbol##_config,                        \
                                            .kernel = reinterpret_cast<const void*>(&symbol), \
                                            .launch = &Launch_##symbol};                      \
    return instance;                                                                          \
  }

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LAUNCH_INSTANCE_H_
