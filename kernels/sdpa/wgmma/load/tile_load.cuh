// SPDX-License-Identifier: Apache-2.0
// Tiles by TMA, for whichever thread asks for them.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TILE_LOAD_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TILE_LOAD_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// `rows` rows of one head from first_row on: head_dim / C boxes of C columns, RowBytes, one
// behind the other. Rows past the last become zeros.
template <WgmmaShape kShape>
__device__ void LoadTile(uint32_t to, const CUtensorMap* map, uint32_t barrier, int rows,
                         int first_row, int head) {
  constexpr int kColumns = SwizzleColumns(kShape);
#pragma unroll
  for (int block = 0; block < kShape.head_dim / kColumns; ++block) {
    ptx::TmaLoad3d(to + block * rows * RowBytes(kShape), map, barrier, block * kColumns, first_row,
                   head);
  }
}

// A tile of queries, once its place is empty.
//   phase: the parity of Q's empty barrier to wait for
template <WgmmaShape kShape>
__device__ void LoadQ(const WgmmaParamsOf<kShape>& p, uint32_t smem,
                      const WgmmaBarriers<kShape>& barriers, const WgmmaWork<kShape>& work,
                      uint32_t phase) {
  constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  ptx::MbarrierWait(barriers.QEmpty(), phase);
  if constexpr (kShape.pack_heads) {
    // Behind a box's rows, where a group does not divide the tile, lies what lay there before:
    // rows of a product that nobody stores.
    constexpr int kRowBytes = kShape.head_dim * ElementBytes(kShape);
    ptx::MbarrierArriveExpectBytes(barriers.QFull(), p.positions * p.group_size * kRowBytes);
#pragma unroll
    for (int block = 0; block < kShape.head_dim / SwizzleColumns(kShape); ++block) {
      ptx::TmaLoad4d(smem + kSmem.q + block * TileM(kShape) * kSwizzleBytes, &p.q, barriers.QFull(),
                     block * SwizzleColumns(kShape), 0, work.first_row, work.head);
    }
  } else {
    ptx::MbarrierArriveExpectBytes(barriers.QFull(), kSmem.q_bytes);
    LoadTile<kShape>(smem + kSmem.q, &p.q, barriers.QFull(), TileM(kShape),
                     work.FirstQuery() + work.first_row, work.head);
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_TILE_LOAD_CUH_
