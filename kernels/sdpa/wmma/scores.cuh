// S = Q K^T on tensor cores through the WMMA API.

#ifndef WARPLEDGER_KERNELS_SDPA_WMMA_SCORES_CUH_
#define WARPLEDGER_KERNELS_SDPA_WMMA_SCORES_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/parts/copy.cuh"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

inline constexpr int kWmma = 16;  // edge of the 16x16x16 shape

// Writes the raw scores of one tile; 16x16 blocks of S go round the warps.
// K is stored (key, head_dim) row-major, which read column-major is K^T.
//   q: (tile_m, head_dim) fp16 in shared memory
//   scores: (tile_m, tile_n) fp32 in shared memory
// No barrier inside.
template <Config kConfig>
__device__ void ComputeScoresWmma(float* scores, const half* q, const KvTile& kv) {
  namespace wmma = nvcuda::wmma;
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr int kColumnBlocks = TileN(kConfig) / kWmma;
  constexpr int kBlocks = TileM(kConfig) / kWmma * kColumnBlocks;
  static_assert(kBlocks % Warps(kConfig) == 0, "every warp owns the same number of blocks");

  const int warp = threadIdx.x / kWarpSize;
#pragma unroll
  for (int block = warp; block < kBlocks; block += Warps(kConfig)) {
    const int row = block / kColumnBlocks * kWmma;
    const int key = block % kColumnBlocks * kWmma;
    wmma::fragment<wmma::accumulator, kWmma, kWmma, kWmma, float> acc;
    wmma::fill_fragment(acc, 0.0f);
#pragma unroll
    for (int d = 0; d < kConfig.head_dim; d += kWmma) {
      wmma::fragment<wmma::matrix_a, kWmma, kWmma, kWmma, half, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, kWmma, kWmma, kWmma, half, wmma::col_major> b;
      wmma::load_matrix_sync(a, q + row * kSmem.ld_tile + d, kSmem.ld_tile);
      wmma::load_matrix_sync(b, kv.k + key * kSmem.ld_tile + d, kSmem.ld_tile);
      wmma::mma_sync(acc, a, b, acc);
    }
    wmma::store_matrix_sync(scores + row * kSmem.ld_scores + key, acc, kSmem.ld_scores,
                            wmma::mem_row_major);
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WMMA_SCORES_CUH_
