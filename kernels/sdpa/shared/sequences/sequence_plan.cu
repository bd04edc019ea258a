// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/shared/sequences/sequence_plan.cuh"

namespace warpledger::sdpa {
namespace {

__global__ void __launch_bounds__(kPlanThreads)
    PlanSequences(const __grid_constant__ SequencePlanParams p) {
  __shared__ SequencePlanSmem smem;
#if __CUDA_ARCH__ >= 900    // the only one that launches it
  ptx::LaunchDependents();  // they wait for this kernel's end before they read the list
#endif
  ListSequenceBlocks(p, smem);
}

}  // namespace

cudaError_t LaunchSequencePlan(const SequencePlanParams& params, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kPlanThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, PlanSequences, params);
}

cudaError_t LoadSequencePlan() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, PlanSequences);
}

}  // namespace warpledger::sdpa
