// SPDX-License-Identifier: Apache-2.0
// Where fp16 elements lie in a tile with the 128-byte swizzle, and which addresses the
// lanes of a warp give to stmatrix so that an accumulator fragment comes to lie so.
// Host-safe, so that the algebra is tested without a GPU.
//
// A tile's rows are 64 elements, 128 bytes; wider ones are several tiles side by side.
// Chunk c (16 bytes) of row r lies at chunk c ^ (r % 8) of the row: bits 4 to 6 of the
// address are XORed with bits 7 to 9, for the tile is 1024-byte aligned (PTX ISA,
// "Swizzling modes"). Copy engine and wgmma both do so.
//
//   SwizzledByte(3, 8) == 3 * 128 + (1 ^ 3) * 16

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SWIZZLE_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SWIZZLE_H_

#include <cstdint>

#include "kernels/common/bank_model.h"

namespace warpledger::sdpa {

// Of chunk `chunk` of row `row`, in rows of whatever elements. Rows of 64 bytes have the 64-byte
// swizzle: bits 4 and 5 are XORed with bits 7 and 8, chunk c of row r lies at c ^ (r / 2 % 4).
constexpr uint32_t SwizzledChunk(int row, int chunk, int row_bytes = bank_model::kRowBytes) {
  using namespace bank_model;
  return static_cast<uint32_t>(row * row_bytes +
                               XorSwizzle(row, chunk, row_bytes / kChunkBytes) * kChunkBytes);
}

// Of the element (row, column), column below 64.
constexpr uint32_t SwizzledByte(int row, int column) {
  return SwizzledChunk(row, column / 8) + static_cast<uint32_t>(column % 8 * 2);
}

// stmatrix.x4 stores four 8x8 matrices, of which lane l gives the address of row l % 8 of
// matrix l / 8. A warp's fragment of 16 rows by 16 columns is four: rows 0 to 7 and 8 to 15
// of columns 0 to 7, then the same of columns 8 to 15; lane t holds of each the columns
// 2 (t % 4) and the next of row t / 4, as accumulators do. This is the address that the
// lane gives for columns 0 to 15 of the tile.
constexpr uint32_t FragmentRowByte(int lane) {
  const int row = lane % 16;
  return SwizzledByte(row, lane / 16 * 8);
}

// … and for columns 16 * piece on: two chunks further are an XOR, which keeps the swizzle.
constexpr uint32_t FragmentPieceByte(uint32_t first, int piece) {
  return first ^ static_cast<uint32_t>(piece * 32);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SWIZZLE_H_
