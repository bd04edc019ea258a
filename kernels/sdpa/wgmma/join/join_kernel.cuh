// SPDX-License-Identifier: Apache-2.0
// The body of the kernel that joins parts (join_kernel.h).

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/sdpa/wgmma/join/join_kernel.h"
#include "kernels/sdpa/wgmma/join/join_pieces.cuh"

namespace warpledger::sdpa {

inline constexpr int kJoinGroups = 8;  // of threads, that share a row's parts
inline constexpr int kPartsOfGroup = kMaxJoinSplits / kJoinGroups;

// A thread for each four columns in each group.
template <int kHeadDim>
inline constexpr int kJoinThreads = kHeadDim / 4 * kJoinGroups;
template <int kHeadDim>
inline constexpr int kJoinSmemBytes = kJoinThreads<kHeadDim>* static_cast<int>(sizeof(float4) +
                                                                               sizeof(float2));

// Row blockIdx.x. A thread joins its columns in an eighth of the parts, whose loads stand side by
// side; then the first group joins the eighths.
//   smem: kJoinSmemBytes, 16-byte aligned
template <int kHeadDim, bool kBf16>
__device__ void JoinRow(const JoinParams& p, unsigned char* smem) {
  constexpr int kQuads = kHeadDim / 4;
  auto* group_x = reinterpret_cast<float4*>(smem);  // (groups, quads)
  auto* group_stats = reinterpret_cast<float2*>(group_x + kJoinGroups * kQuads);
  const int thread = static_cast<int>(threadIdx.x);
  const int quad = thread % kQuads;
  const int group = thread / kQuads;
  const auto row = static_cast<int64_t>(blockIdx.x);
  const int first = group * p.splits / kJoinGroups;
  const int end = (group + 1) * p.splits / kJoinGroups;
  float2 stats[kPartsOfGroup];
  float4 parts[kPartsOfGroup];
#pragma unroll
  for (int i = 0; i < kPartsOfGroup; ++i) {
    // Clamped: no branch stands between loads.
    const int64_t at = int64_t{min(first + i, p.splits - 1)} * p.rows + row;
    stats[i] = __ldcg(p.stats + at);
    parts[i] = __ldcg(p.parts + at * kQuads + quad);
    if (first + i < end) continue;
    stats[i] = make_float2(-INFINITY, 0.0f);
    parts[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  JoinedPiece joined;
  joined.Add(stats, parts, p.softmax_scale);
  group_stats[thread] = make_float2(joined.largest, joined.sum);
  group_x[thread] = joined.x;
  __syncthreads();
  if (group > 0) return;
  static_assert(kJoinGroups == kPartsOfGroup);
#pragma unroll
  for (int i = 0; i < kJoinGroups; ++i) {
    stats[i] = group_stats[i * kQuads + quad];
    parts[i] = group_x[i * kQuads + quad];
  }
  joined = {};
  joined.Add(stats, parts, p.softmax_scale);
  joined.Store<kHeadDim, kBf16>(p.o, p.lse, row, quad, p.softmax_scale);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_
