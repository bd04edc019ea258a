// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/wgmma/join/join_kernel.cuh"

namespace warpledger::sdpa {
namespace {

template <int kHeadDim, bool kBf16, int kMost>
__global__ void __launch_bounds__(JoinThreads(kHeadDim, kMost))
    JoinParts(const __grid_constant__ JoinParams p) {
  __shared__ __align__(16) unsigned char smem[JoinSmemBytes(kHeadDim, kMost)];
#if __CUDA_ARCH__ >= 900  // the only one that launches it
  ptx::AwaitPriorKernel();
  ptx::LaunchDependents();
#endif
  JoinRow<kHeadDim, kBf16, kMost>(p, smem);
}

template <int kHeadDim, int kMost = kLeastJoinCapacity>
cudaError_t Launch(const JoinParams& params, bool bf16, bool dependent, cudaStream_t stream) {
  if constexpr (kMost < kMaxJoinSplits) {
    if (JoinCapacity(params.splits) > kMost) {
      return Launch<kHeadDim, 2 * kMost>(params, bf16, dependent, stream);
    }
  }
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(params.rows));
  config.blockDim = dim3(JoinThreads(kHeadDim, kMost));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = dependent ? 1 : 0;
  return bf16 ? cudaLaunchKernelEx(&config, JoinParts<kHeadDim, true, kMost>, params)
              : cudaLaunchKernelEx(&config, JoinParts<kHeadDim, false, kMost>, params);
}

template <int kHeadDim, int kMost = kLeastJoinCapacity>
cudaError_t Load(bool bf16) {
  cudaFuncAttributes attributes;
  const cudaError_t error =
      bf16 ? cudaFuncGetAttributes(&attributes, JoinParts<kHeadDim, true, kMost>)
           : cudaFuncGetAttributes(&attributes, JoinParts<kHeadDim, false, kMost>);
  if constexpr (kMost < kMaxJoinSplits) {
    if (error == cudaSuccess) return Load<kHeadDim, 2 * kMost>(bf16);
  }
  return error;
}

}  // namespace

cudaError_t LaunchJoin(const JoinParams& params, int head_dim, bool bf16, bool dependent,
                       cudaStream_t stream) {
  if (params.splits > kMaxJoinSplits) return cudaErrorInvalidValue;
  switch (head_dim) {
    case 64:
      return Launch<64>(params, bf16, dependent, stream);
    case 128:
      return Launch<128>(params, bf16, dependent, stream);
    case 256:
      return Launch<256>(params, bf16, dependent, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LoadJoin(int head_dim, bool bf16) {
  switch (head_dim) {
    case 64:
      return Load<64>(bf16);
    case 128:
      return Load<128>(bf16);
    case 256:
      return Load<256>(bf16);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace warpledger::sdpa
