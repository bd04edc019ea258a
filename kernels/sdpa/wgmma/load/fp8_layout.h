// SPDX-License-Identifier: Apache-2.0
// How P and V must lie for a product of 8-bit operands (wgmma m64nNk32, e4m3), which takes
// both with K along the rows. Host-safe algebra; transpose.cuh and consumer.cuh use it.
//
// P comes from Q K^T in registers. Of 32 keys a thread holds, for each of its two rows,
// columns 2 q and the next of four groups of eight (q = lane % 4); as A operand it must
// hold four bytes that are neighbours along K, at 4 q of the first 16 and of the second. No
// exchange among lanes is needed if the keys are renumbered, for a sum over keys doesn't
// ask for their order: position k of K stands for key KeyAt(k), in P and in V alike
// (FlashAttention-3, arXiv 2407.08608, section 3.3, has the idea).
//
// V comes as (keys, head_dim) and must lie as (head_dim, keys). ldmatrix.trans moves pairs
// of bytes, so what it transposes are blocks of 8 keys by 16 columns; of two such loads a lane
// has bytes that Prmt, the instruction, sorts.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_FP8_LAYOUT_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_FP8_LAYOUT_H_

#include <cstdint>

#include "kernels/common/bank_model.h"
#include "kernels/sdpa/wgmma/swizzle.h"

namespace warpledger::sdpa::fp8 {

inline constexpr int kKeysPerProduct = 32;  // K of an 8-bit wgmma

// The key, of 32, that position `k` of K stands for.
constexpr int KeyAt(int k) {
  const int half = k / 16;      // registers 0, 1 or 2, 3 of A
  const int quad = k % 16 / 4;  // the lane in its quad
  const int group = k % 4 / 2;  // of eight columns, in the half
  return half * 16 + group * 8 + quad * 2 + k % 2;
}

// … and back.
constexpr int PositionOf(int key) {
  return key / 16 * 16 + key % 8 / 2 * 4 + key % 16 / 8 * 2 + key % 2;
}

// The element of the accumulator fragment (32 columns, 16 values a thread: index
// 4 * group + 2 * (row half) + j) that is byte `byte` of register `reg` of A. Registers 0 and
// 2 are of the upper row, 1 and 3 of the lower one.
constexpr int AccumulatorOfByte(int reg, int byte) {
  const int group = reg / 2 * 2 + byte / 2;
  return 4 * group + 2 * (reg % 2) + byte % 2;
}

// What prmt.b32 gives: byte i is byte (selector >> 4 i) & 7 of b:a, a being bytes 0 to 3.
constexpr uint32_t Prmt(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = selector >> (4 * i) & 7;
    out |= static_cast<uint32_t>(both >> (8 * from) & 0xff) << (8 * i);
  }
  return out;
}

// ldmatrix.trans on 8 rows of 16 bytes, seen as an 8x8 matrix of byte pairs: lane l gets
// pairs (row 2 (l % 4), pair l / 4) and (row 2 (l % 4) + 1, pair l / 4). So of columns
// c = 2 (l / 4) and c + 1 it holds, of keys r = 2 (l % 4) and r + 1, the bytes
//   [V(r, c), V(r, c + 1), V(r + 1, c), V(r + 1, c + 1)].
// Two loads, of keys r and of keys r + 8, sort into four keys of column c and four of
// column c + 1: [V(r), V(r + 1), V(r + 8), V(r + 9)], which is the order that KeyAt asks
// for at positions 4 (l % 4) to 4 (l % 4) + 3.
inline constexpr uint32_t kEvenColumn = 0x6420;
inline constexpr uint32_t kOddColumn = 0x7531;

// --- A tile of V, transposed block by block --------------------------------------
//
// A block is 32 keys by 16 columns: one ldmatrix.x4.trans, whose matrices are eight keys
// each, and one stmatrix.x4, whose matrices are eight columns by 16 positions each: matrices
// 0 and 1 positions 0 to 15, 2 and 3 positions 16 to 31. The first of each pair has the even
// columns of the first eight and the odd ones of the last, so that its rows lie at eight
// different chunks of the swizzle (all even columns would lie at four); the second has the
// others. Both tiles are swizzled, rows of 128 or of 64 bytes (R); `key` is the block's first,
// `chunk` its columns / 16.

// An address is a lane's own part, which is the same for all blocks, moved to the block: in the
// bits of a row's chunks by XOR, which keeps the swizzle, and by an addition above them.

// Where the row begins that a lane names to ldmatrix, in V as it came: (head_dim / R, tile_n, R).
// `own` is LaneLoadByte.
constexpr uint32_t LaneLoadByte(int lane, int row_bytes) {
  return SwizzledChunk(lane, 0, row_bytes);
}
constexpr uint32_t LoadByte(uint32_t own, int key, uint32_t chunk, int tile_n, int row_bytes) {
  const auto chunks = static_cast<uint32_t>(row_bytes / 16);
  return (own ^ chunk % chunks * 16) +
         (chunk / chunks * static_cast<uint32_t>(tile_n) + static_cast<uint32_t>(key)) *
             static_cast<uint32_t>(row_bytes);
}

// The column, of the block's 16, of row `row` of the first matrix of a pair or the second.
constexpr int StoredColumn(int row, int second) { return 2 * row + ((row >= 4) != (second != 0)); }

// What sorts a lane's two registers into its part of the first matrix of a pair; the other
// selector, into the second.
constexpr uint32_t FirstSelector(int lane) { return lane < 16 ? kEvenColumn : kOddColumn; }
constexpr uint32_t SecondSelector(int lane) { return lane < 16 ? kOddColumn : kEvenColumn; }

// Where the row begins that a lane names to stmatrix, in V transposed: (ceil(tile_n / R),
// head_dim, R). `own` is LaneStoreByte.
constexpr uint32_t LaneStoreByte(int lane, int row_bytes) {
  const int matrix = lane / 8;
  return SwizzledChunk(StoredColumn(lane % 8, matrix % 2), matrix / 2, row_bytes);
}
constexpr uint32_t StoreByte(uint32_t own, int key, uint32_t chunk, int head_dim, int row_bytes) {
  return (own ^ static_cast<uint32_t>(key % row_bytes)) +
         (static_cast<uint32_t>(key / row_bytes * head_dim) + chunk * 16) *
             static_cast<uint32_t>(row_bytes);
}

// Where, in V transposed, a product's B operand begins: 32 keys from `key` on, of the columns from
// `first_column` on.
constexpr uint32_t OperandByte(int key, int first_column, int head_dim, int row_bytes) {
  return static_cast<uint32_t>((key / row_bytes * head_dim + first_column) * row_bytes +
                               key % row_bytes);
}

}  // namespace warpledger::sdpa::fp8

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_FP8_LAYOUT_H_
