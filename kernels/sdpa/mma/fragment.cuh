// Fragments of mma.m16n8k16 and the loads that fill them.
//
// With g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"), a lane holds, in pairs of neighbouring columns or keys,
//   A (16, 16): rows g and g + 8, columns 2t, 2t + 1 and 2t + 8, 2t + 9
//   B (16, 8):  k = 2t, 2t + 1 and 2t + 8, 2t + 9 of column g
//   C (16, 8):  rows g and g + 8, columns 2t, 2t + 1
// So two C side by side are one A: the scores' accumulators become P's operand
// without leaving the lane.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

__device__ inline uint32_t MmaSharedAddress(const void* smem) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(smem));
}

// C += A B with fp32 accumulators.
template <bool kBf16>
__device__ void Mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (kBf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
// C += A B with fp16 accumulators: rows g and g + 8, a pair of columns each.
template <bool kBf16>
__device__ void Mma(uint32_t (&c)[2], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(!kBf16, "bf16 has no 16-bit accumulators");
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};\n"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void LdMatrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void LdMatrixTransposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ inline void StoreSharedPair(uint32_t address, uint32_t pair) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(address), "r"(pair) : "memory");
}
__device__ inline uint32_t LoadSharedHalf(uint32_t address) {
  uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(bits) : "r"(address) : "memory");
  return bits;
}

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

// Transposes the 4 x 4 matrix over a quad whose row `lane` is `x`.
__device__ inline void TransposeOverQuad(uint32_t (&x)[4], int lane) {
#pragma unroll
  for (int step = 1; step <= 2; step *= 2) {
    const bool upper = (lane & step) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & step) != 0) continue;
      const uint32_t send = upper ? x[i] : x[i + step];
      const uint32_t received = __shfl_xor_sync(0xffffffffu, send, step);
      (upper ? x[i] : x[i + step]) = received;
    }
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_FRAGMENT_CUH_
