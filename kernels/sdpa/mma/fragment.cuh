// SPDX-License-Identifier: Apache-2.0
// Where fragments of mma.m16n8k16 lie in a tile, and the loads that need more than one
// instruction (instructions.cuh has the layouts).

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/instructions.cuh"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// The lane's share of the address of a 16 x 16 block that starts at row 0, chunk 0
// of a tile with rows of kColumns fp16; Block() moves it. Under the XOR swizzle the
// row's part of the address is the same for every block, so that moving by chunks
// is an XOR and moving by rows an addition.
//   kRowsFirst: lanes 0..15 take rows 0..15 of the first chunk (A from rows of
//               queries; B from rows of keys with .trans, V)
//   else:       lanes 0..7 and 8..15 take rows 0..7 of both chunks (B from rows of
//               keys without .trans, K)
template <MmaLayout kLayout, int kColumns, bool kRowsFirst>
class FragmentAddress {
 public:
  __device__ FragmentAddress() {
    const int lane = threadIdx.x % 32;
    const int row = kRowsFirst ? lane % 16 : lane / 16 * 8 + lane % 8;
    const int chunk = kRowsFirst ? lane / 16 : lane / 8 % 2;
    lane_offset_ = ChunkOffset(kLayout, kColumns, row, chunk);
  }
  // `row` is a multiple of 16; the block's first column is 16 * `column_block`.
  __device__ uint32_t Block(uint32_t tile, int row, int column_block) const {
    const uint32_t columns = column_block * 2 * kMmaChunkBytes;
    const uint32_t in_row =
        kLayout == MmaLayout::kXorSwizzle ? lane_offset_ ^ columns : lane_offset_ + columns;
    return tile + in_row + row * RowBytes(kLayout, kColumns);
  }

 private:
  uint32_t lane_offset_;
};

// B of 16 keys and 16 columns of V by plain loads, as LdMatrixTransposed would
// give it: eight 2-byte loads instead of one instruction.
template <MmaLayout kLayout, int kColumns>
__device__ void LoadTransposedPlain(uint32_t (&r)[4], uint32_t tile, int first_row,
                                    int column_block) {
  const int lane = threadIdx.x % 32;
  const int g = lane / 4;
  const int t = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + i % 2 * 8 + 2 * t;
    const int chunk = column_block * 2 + i / 2;
    const uint32_t low = LoadSharedHalf(tile + ChunkOffset(kLayout, kColumns, row, chunk) + g * 2);
    const uint32_t high =
        LoadSharedHalf(tile + ChunkOffset(kLayout, kColumns, row + 1, chunk) + g * 2);
    r[i] = low | high << 16;
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_
