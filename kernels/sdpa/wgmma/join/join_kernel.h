// SPDX-License-Identifier: Apache-2.0
// The kernel that joins what CTAs which share keys have left, where the last of them does not.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_H_

#include <cuda_runtime_api.h>
#include <vector_types.h>

namespace warpledger::sdpa {

inline constexpr int kMaxJoinSplits = 64;

// For how many parts the kernel that joins so many has loads.
inline constexpr int kLeastJoinCapacity = 2;
constexpr int JoinCapacity(int splits) {
  int most = kLeastJoinCapacity;
  while (most < splits) most *= 2;
  return most;
}

struct JoinParams {
  const float4* parts = nullptr;  // (splits, rows, head_dim) fp32, not yet divided
  const float2* stats = nullptr;  // (splits, rows): maximum of raw scores, sum
  void* o = nullptr;              // (rows, head_dim) fp16 or bf16
  float* lse = nullptr;           // (rows) fp32, or null
  int rows = 0;                   // over all heads and the batch
  int splits = 1;                 // at most kMaxJoinSplits
  float softmax_scale = 1.0f;     // multiplies Q K^T
};

// One CTA a row. A row's parts are joined in one order: the same parts give the same bits.
// cudaErrorInvalidValue for more splits than that, or another head_dim.
//   head_dim: 64, 128 or 256
//   dependent: begins beside the end of the kernel before, and waits for it (sm_90)
cudaError_t LaunchJoin(const JoinParams& params, int head_dim, bool bf16, bool dependent,
                       cudaStream_t stream);

// Loads the code of all that LaunchJoin may launch for these, on the current device: a launch that
// is captured into a graph can't.
cudaError_t LoadJoin(int head_dim, bool bf16);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_H_
