// SPDX-License-Identifier: Apache-2.0
// A thread's scores of a tile, as accumulators of wgmma hold them (quad.cuh): four values to each
// eight keys, the first two of row 0 of its rows, the others of row 1. And which keys a row sees.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_SCORES_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_SCORES_CUH_

#include <cmath>

namespace warpledger::sdpa {

// Position `row` of Q sees keys [0, CausalKeys); the causal mask is aligned to the bottom right.
template <typename Params>
__device__ int CausalKeys(const Params& p, int row) {
  return min(row + p.seq_kv - p.seq_q + 1, p.seq_kv);
}

// Sets scores of row r to -inf from key `visible` of the tile on. `lane`: of the quad.
template <int kCount>
__device__ void MaskRow(float (&scores)[kCount], int r, int visible, int lane) {
  const int visible_here = visible - lane * 2;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (i * 2 + j >= visible_here) scores[i + 2 * r + j] = -INFINITY;
    }
  }
}

// The largest of `so_far` and this thread's scores of row r.
template <int kCount>
__device__ float ThreadMax(const float (&scores)[kCount], int r, float so_far) {
  // Two chains: fmaxf is a dependent instruction of a few cycles.
  float even = so_far;
  float odd = so_far;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    even = fmaxf(even, scores[i + 2 * r]);
    odd = fmaxf(odd, scores[i + 2 * r + 1]);
  }
  return fmaxf(even, odd);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_SCORES_CUH_
