// SPDX-License-Identifier: Apache-2.0
// S = Q K^T on tensor cores through the WMMA API.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_SCORES_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_SCORES_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"
#include "kernels/sdpa/smem/softmax.cuh"
#include "kernels/sdpa/smem/wmma/row_reduction.cuh"

namespace warpledger::sdpa::smem {

inline constexpr int kWmma = 16;  // edge of the 16x16x16 shape

using ScoreFragment = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmma, kWmma, kWmma, float>;

// The raw scores of the 16x16 block at (row, key) of a tile.
// K is stored (key, head_dim) row-major, which read column-major is K^T.
//   q: (tile_m, head_dim) fp16 in shared memory
template <Config kConfig>
__device__ ScoreFragment ScoreBlock(const half* q, const KvTile& kv, int row, int key) {
  namespace wmma = nvcuda::wmma;
  static_assert(HasLinearFragments(LayoutOf(kConfig)));
  constexpr int kLd = MakeSmemLayout(kConfig).ld_tile;
  ScoreFragment acc;
  wmma::fill_fragment(acc, 0.0f);
#pragma unroll
  for (int d = 0; d < kConfig.head_dim; d += kWmma) {
    wmma::fragment<wmma::matrix_a, kWmma, kWmma, kWmma, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, kWmma, kWmma, kWmma, half, wmma::col_major> b;
    wmma::load_matrix_sync(a, q + TilePlace<kConfig, TileM(kConfig)>(row, d), kLd);
    wmma::load_matrix_sync(b, kv.k + TilePlace<kConfig, TileN(kConfig)>(key, d), kLd);
    wmma::mma_sync(acc, a, b, acc);
  }
  return acc;
}

// Writes the raw scores of one tile; 16x16 blocks of S go round the warps.
//   scores: (tile_m, tile_n) fp32 in shared memory
// No barrier inside.
template <Config kConfig>
__device__ void ComputeScoresWmma(SoftmaxState<kConfig>& s, const half* q, const KvTile& kv,
                                  const Work& work, float scale) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr int kColumnBlocks = TileN(kConfig) / kWmma;
  constexpr int kBlocks = TileM(kConfig) / kWmma * kColumnBlocks;
  static_assert(kBlocks % Warps(kConfig) == 0 || kBlocks < Warps(kConfig),
                "the warps that own blocks own the same number of them");

  const int warp = threadIdx.x / kWarpSize;
#pragma unroll
  for (int block = warp; block < kBlocks; block += Warps(kConfig)) {
    const int row = block / kColumnBlocks * kWmma;
    const int key = block % kColumnBlocks * kWmma;
    const ScoreFragment acc = ScoreBlock<kConfig>(q, kv, row, key);
    nvcuda::wmma::store_matrix_sync(s.scores + row * kSmem.ld_scores + key, acc, kSmem.ld_scores,
                                    nvcuda::wmma::mem_row_major);
    if constexpr (kConfig.softmax_in_registers == 1) {
      StoreBlockMaxima(s.partial_max + block % kColumnBlocks * TileM(kConfig) + row, acc, scale,
                       work, row, kv.first_key + key);
    }
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_SCORES_CUH_
