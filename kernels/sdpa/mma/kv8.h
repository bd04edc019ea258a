// SPDX-License-Identifier: Apache-2.0
// 8-bit K and V on their way into fp16 fragments: which byte goes where, and the bit
// formulas that widen a code. Host-safe; a test holds all of it against plain arithmetic.
//
// ldmatrix moves 16-bit elements, so with bytes in shared memory an element is two
// neighbours along head_dim. With g = lane / 4 and t = lane % 4:
//
//   K, without .trans: the lane gets bytes 4t .. 4t + 3 of key g, of 16 along head_dim.
//      mma wants k = 2t, 2t + 1 and 2t + 8, 2t + 9 there. k is summed over, so K's columns
//      may stand in any order in which Q's stand too: QkColumn.
//   V, with .trans: the lane gets bytes 2g, 2g + 1 of keys 2t and 2t + 1. mma wants one
//      column of both keys: bytes 0 and 2 of the register belong to one product, 1 and 3 to
//      another, whose columns of O are the even and the odd ones: OutputColumn.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_KV8_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_KV8_H_

#include <cstdint>

#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/shared/exp_method.h"

namespace warpledger::sdpa {

inline constexpr int kKeysPerByteLoad = 32;  // of one ldmatrix.x4 of K, 16 columns wide

// The column of head_dim, of 16, that index k of a product of Q K^T stands for.
constexpr int QkColumn(int k) { return k % 8 / 2 * 4 + k / 8 * 2 + k % 2; }

// The column of O that column `n` of block `block` of the accumulators holds.
constexpr int OutputColumn(bool is_8bit, int block, int n) {
  return is_8bit ? block / 2 * 16 + 2 * n + block % 2 : block * 8 + n;
}

// The byte of its row at which a lane's four columns of Q begin, for step `depth`: those
// that QkColumn gives to its k. Rows of fp16, not swizzled.
constexpr int QueryByte(int lane, int depth) { return depth * 32 + lane % 4 * 8; }

// The offset in a tile that lies `bytes` further along its row than `offset`. `bytes` is a
// multiple of the chunks' 16, and of 32 where `offset` is not in the first of two chunks.
constexpr uint32_t MovedInRow(MmaLayout layout, uint32_t offset, uint32_t bytes) {
  return layout == MmaLayout::kXorSwizzle ? offset ^ bytes : offset + bytes;
}

// PRMT: byte i of the result is byte `selector >> 4 i & 7` of b:a.
WARPLEDGER_HOST_DEVICE inline uint32_t BytePermute(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return result;
#endif
}

// Bytes `i` and `j` of a word as the lower or the upper halves of two 16-bit values;
// the other halves come from byte 0 of the second operand.
constexpr uint32_t LowerHalves(int i, int j) { return i | 4 << 4 | j << 8 | 4 << 12; }
constexpr uint32_t UpperHalves(int i, int j) { return 4 | i << 4 | 4 << 8 | j << 12; }

// Integer codes, before the subtraction: 0x6400 is 1024 in fp16, whose last place is 1, so
// a code in its lower byte adds itself (Kim et al., arXiv 2211.10017).
inline constexpr uint32_t kUint8Magic = 0x64646464u;
inline constexpr float kUint8MagicZero = 1024 + 128;
WARPLEDGER_HOST_DEVICE inline uint32_t Uint8PairPlusMagic(uint32_t word, uint32_t lower_halves) {
  return BytePermute(word, kUint8Magic, lower_halves);
}

// E5M2 is fp16 without its lower byte.
WARPLEDGER_HOST_DEVICE inline uint32_t E5m2PairBits(uint32_t word, uint32_t upper_halves) {
  return BytePermute(word, 0, upper_halves);
}

// E4M3 in fp16's fields: the sign stays at the top, all else moves down by one. The
// exponents' biases differ by 8, so the result is kE4m3BitsUnit times too small, subnormals
// too. For GPUs without cvt from E4M3 (before sm_89). Special codes are not kept.
inline constexpr float kE4m3BitsUnit = 256;
WARPLEDGER_HOST_DEVICE inline uint32_t E4m3PairBits(uint32_t word, uint32_t upper_halves) {
  const uint32_t x = BytePermute(word, 0, upper_halves);
  return (x & 0x80008000u) | (x >> 1 & 0x3f803f80u);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_KV8_H_
