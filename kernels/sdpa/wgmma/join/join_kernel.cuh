// SPDX-License-Identifier: Apache-2.0
// The body of the kernel that joins parts (join_kernel.h).

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/sdpa/shared/joined_piece.cuh"
#include "kernels/sdpa/wgmma/join/join_kernel.h"

namespace warpledger::sdpa {

// Groups of threads that share up to `most` parts of a row.
constexpr int JoinGroups(int most) { return most < 8 ? most : 8; }

// A thread for each four columns in each group.
constexpr int JoinThreads(int head_dim, int most) { return head_dim / 4 * JoinGroups(most); }
constexpr int JoinSmemBytes(int head_dim, int most) {
  return JoinThreads(head_dim, most) * static_cast<int>(sizeof(float4) + sizeof(float2));
}

// Row blockIdx.x. A thread joins its columns in its group's parts, whose loads stand side by side;
// then the first group joins what all have.
//   kMost: parts that it has loads for, JoinCapacity(p.splits). Each load more reads a part again,
//          from L2: with loads for 64, 16 parts were read four times.
//   smem: JoinSmemBytes, 16-byte aligned
template <int kHeadDim, bool kBf16, int kMost>
__device__ void JoinRow(const JoinParams& p, unsigned char* smem) {
  constexpr int kQuads = kHeadDim / 4;
  constexpr int kGroups = JoinGroups(kMost);
  constexpr int kPartsOfGroup = kMost / kGroups;
  auto* group_x = reinterpret_cast<float4*>(smem);  // (groups, quads)
  auto* group_stats = reinterpret_cast<float2*>(group_x + kGroups * kQuads);
  const int thread = static_cast<int>(threadIdx.x);
  const int quad = thread % kQuads;
  const int group = thread / kQuads;
  const auto row = static_cast<int64_t>(blockIdx.x);
  const int first = group * p.splits / kGroups;
  const int end = (group + 1) * p.splits / kGroups;
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
  float2 stats_of[kGroups];
  float4 x_of[kGroups];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    stats_of[i] = group_stats[i * kQuads + quad];
    x_of[i] = group_x[i * kQuads + quad];
  }
  joined = {};
  joined.Add(stats_of, x_of, p.softmax_scale);
  joined.Store<kHeadDim, kBf16>(p.o, p.lse, row, quad, p.softmax_scale);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_JOIN_KERNEL_CUH_
