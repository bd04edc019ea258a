// SPDX-License-Identifier: Apache-2.0
// S = Q K^T on the FP32 pipes.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_SCORES_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_SCORES_CUH_

#include <cuda_fp16.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/simt/vector.cuh"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa::smem {

// Writes the raw scores of one tile. A thread owns one key and every
// `kRowStep`-th query row, so a K element is read once for all of its rows and
// the Q elements are broadcast within the warp.
//   q: (tile_m, head_dim) fp16 in shared memory
//   scores: (tile_m, tile_n) fp32 in shared memory
// Keys past seq_kv are not read; their scores are not written (the softmax
// masks them). No barrier inside.
template <Config kConfig>
__device__ void ComputeScoresSimt(float* scores, const half* q, const KvTile& kv, int seq_kv) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr int kVec = SimtVector<kConfig>();
  constexpr int kRowStep = ComputeThreads(kConfig) / TileN(kConfig);
  constexpr int kRows = TileM(kConfig) / kRowStep;
  static_assert(ComputeThreads(kConfig) % TileN(kConfig) == 0 && TileM(kConfig) % kRowStep == 0,
                "every thread owns the same number of scores");

  const int key = threadIdx.x % TileN(kConfig);
  const int first_row = threadIdx.x / TileN(kConfig);
  if (kv.first_key + key >= seq_kv) return;

  float acc[kRows] = {};
#pragma unroll(kVec == 1 ? 8 : 1)
  for (int d = 0; d < kConfig.head_dim; d += kVec) {
    float k_values[kVec];
    LoadVector<kVec>(k_values,
                     kv.k + (kConfig.xor_swizzle ? TilePlace<kConfig, TileN(kConfig)>(key, d)
                                                 : key * kv.ld + d));
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float q_values[kVec];
      LoadVector<kVec>(q_values,
                       q + TilePlace<kConfig, TileM(kConfig)>(first_row + r * kRowStep, d));
#pragma unroll
      for (int i = 0; i < kVec; ++i) acc[r] = fmaf(q_values[i], k_values[i], acc[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    scores[(first_row + r * kRowStep) * kSmem.ld_scores + key] = acc[r];
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_SCORES_CUH_
