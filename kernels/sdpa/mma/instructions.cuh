// SPDX-License-Identifier: Apache-2.0
// The PTX of the mma family, a function per instruction. Tests that run its kernels on
// the CPU put their own in its place.
//
// Fragments of mma.m16n8k16: with g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"), a lane holds, in pairs of neighbouring columns or keys,
//   A (16, 16): rows g and g + 8, columns 2t, 2t + 1 and 2t + 8, 2t + 9
//   B (16, 8):  k = 2t, 2t + 1 and 2t + 8, 2t + 9 of column g
//   C (16, 8):  rows g and g + 8, columns 2t, 2t + 1
// So two C side by side are one A: the scores' accumulators become P's operand
// without leaving the lane.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_INSTRUCTIONS_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_INSTRUCTIONS_CUH_

#include <cstdint>

#include "kernels/common/matrix.cuh"

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

using ptx::LdMatrix;
using ptx::LdMatrixTransposed;

__device__ inline void StoreSharedPair(uint32_t address, uint32_t pair) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(address), "r"(pair) : "memory");
}
__device__ inline uint32_t LoadSharedHalf(uint32_t address) {
  uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(bits) : "r"(address) : "memory");
  return bits;
}
__device__ inline void StoreSharedHalf(uint32_t address, uint16_t bits) {
  asm volatile("st.shared.u16 [%0], %1;\n" ::"r"(address), "h"(bits) : "memory");
}
// Two pairs that lie side by side.
__device__ inline void LoadSharedPairs(uint32_t& first, uint32_t& second, uint32_t address) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];\n"
               : "=r"(first), "=r"(second)
               : "r"(address)
               : "memory");
}

// Four E4M3, the first in the lowest byte, to fp16 (sm_89).
__device__ inline void E4m3ToHalves(uint32_t codes, uint32_t& first, uint32_t& second) {
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n"
      "}\n"
      : "=r"(first), "=r"(second)
      : "r"(codes));
}

// --- mbarriers in forms that sm_80 has ---
__device__ inline void ArriveAtBarrier(uint32_t barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(barrier)
               : "memory");
}
// Arrives once the copies that this thread has started are done.
__device__ inline void ArriveOnCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];\n" ::"r"(barrier) : "memory");
}
__device__ inline void WaitAtBarrier(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "wait:\n"
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra wait;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_INSTRUCTIONS_CUH_
