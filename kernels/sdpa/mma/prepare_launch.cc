#include "kernels/sdpa/mma/prepare_launch.h"

#include "kernels/sdpa/mma/plan.h"

namespace warpledger::sdpa {

cudaError_t PrepareMmaLaunch(const ForwardParams& forward, const MmaShape& shape, MmaParams* params,
                             unsigned* ctas) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  MmaDevice facts;
  int l2_bytes = 0;
  error = cudaDeviceGetAttribute(&facts.sms, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&facts.smem_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                 device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device);
  if (error != cudaSuccess) return error;
  facts.l2_bytes = l2_bytes;
  *ctas = PlanMma(forward, shape, facts, params);
  return cudaSuccess;
}

}  // namespace warpledger::sdpa
