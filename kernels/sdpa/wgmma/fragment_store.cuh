// SPDX-License-Identifier: Apache-2.0
// Accumulator fragments to shared memory in 16 bits, where TMA or wgmma reads them.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_FRAGMENT_STORE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_FRAGMENT_STORE_CUH_

#include <cstdint>

#include "kernels/common/matrix.cuh"
#include "kernels/sdpa/wgmma/swizzle.h"

namespace warpledger::sdpa {

// Stores (64, kColumns) of a warpgroup, swizzled; kColumns is a multiple of 16.
//   tile: 1024-byte aligned address of the first 64 columns, (64, 64)
//   block_bytes: from one block of 64 columns to the next
//   thread: in the warpgroup
//   pair(i): fp16 or bf16 of elements 2 i and 2 i + 1 of the thread's fragment
// All threads of the warpgroup call it. Who reads through the async proxy needs each
// writer's ptx::FenceProxyAsync and then a barrier.
template <int kColumns, typename PairAt>
__device__ inline void StoreFragment(uint32_t tile, uint32_t block_bytes, int thread,
                                     const PairAt& pair) {
  const uint32_t first = tile + thread / 32 * 16 * 128 + FragmentRowByte(thread % 32);
#pragma unroll
  for (int piece = 0; piece < kColumns / 16; ++piece) {
    // Without a bank conflict: the eight rows of a matrix lie at eight different chunks.
    const uint32_t at = FragmentPieceByte(first, piece % 4) + piece / 4 * block_bytes;
    ptx::StMatrix(at, pair(4 * piece), pair(4 * piece + 1), pair(4 * piece + 2),
                  pair(4 * piece + 3));
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_FRAGMENT_STORE_CUH_
