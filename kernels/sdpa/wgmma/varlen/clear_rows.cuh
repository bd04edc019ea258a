// SPDX-License-Identifier: Apache-2.0
// Zeros in place of what follows a sequence's last key in a tile of V.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_VARLEN_CLEAR_ROWS_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_VARLEN_CLEAR_ROWS_CUH_

#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// The rows from `first` on, by all threads of a warpgroup. Products read them behind a
// FenceProxyAsync and a barrier.
//   tile: (head_dim / 64, tile_n, 64), swizzled
template <WgmmaShape kShape>
__device__ void ClearRows(uint32_t tile, int first, int thread) {
  const uint32_t zeros[4] = {};
#pragma unroll 1
  for (int block = 0; block < kShape.head_dim / kSwizzleColumns; ++block) {
    // Swizzling leaves a row's 128 bytes in their place.
    const uint32_t rows = tile + block * kShape.tile_n * kSwizzleBytes;
#pragma unroll 1
    for (int at = first * kSwizzleBytes + thread * 16; at < kShape.tile_n * kSwizzleBytes;
         at += kWarpgroup * 16) {
      ptx::StoreShared(rows + at, zeros);
    }
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_VARLEN_CLEAR_ROWS_CUH_
