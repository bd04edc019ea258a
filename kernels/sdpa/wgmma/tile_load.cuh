// Tiles by the copy engine, for whichever thread asks for them.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_TILE_LOAD_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_TILE_LOAD_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// `rows` rows of one head from first_row on: head_dim / C boxes of C columns, 128 bytes, one
// behind the other. Rows past the last become zeros.
template <WgmmaShape kShape>
__device__ void LoadTile(uint32_t to, const CUtensorMap* map, uint32_t barrier, int rows,
                         int first_row, int head) {
  constexpr int kColumns = SwizzleColumns(kShape);
#pragma unroll
  for (int block = 0; block < kShape.head_dim / kColumns; ++block) {
    ptx::TmaLoad3d(to + block * rows * kSwizzleBytes, map, barrier, block * kColumns, first_row,
                   head);
  }
}

// A tile of queries, once its place is empty.
//   phase: the parity of Q's empty barrier to wait for
template <WgmmaShape kShape>
__device__ void LoadQ(const WgmmaParams& p, uint32_t smem, const WgmmaBarriers<kShape>& barriers,
                      const WgmmaWork& work, uint32_t phase) {
  constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  ptx::MbarrierWait(barriers.QEmpty(), phase);
  ptx::MbarrierArriveExpectBytes(barriers.QFull(), kSmem.q_bytes);
  LoadTile<kShape>(smem + kSmem.q, &p.q, barriers.QFull(), TileM(kShape), work.first_row,
                   work.head);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_TILE_LOAD_CUH_
