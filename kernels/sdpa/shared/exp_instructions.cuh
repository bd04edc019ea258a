// SPDX-License-Identifier: Apache-2.0
// The PTX of the softmax, a function per instruction.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_EXP_INSTRUCTIONS_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_EXP_INSTRUCTIONS_CUH_

#include <cstdint>

namespace warpledger::sdpa {

// MUFU.EX2; subnormal results become 0.
__device__ inline float Exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// MUFU.RCP; a subnormal's is infinite.
__device__ inline float ReciprocalApprox(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two fp32 to one register of fp16, `low` in the lower half.
__device__ inline uint32_t PackHalfPair(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// The same to bf16.
__device__ inline uint32_t PackBf16Pair(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Four fp32 to E4M3, the first in the lowest byte; what is out of range becomes the largest.
__device__ inline uint32_t PackE4m3(float a, float b, float c, float d) {
  uint32_t packed;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}\n"
      : "=r"(packed)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return packed;
}

// 2^x of both halves.
__device__ inline uint32_t Exp2HalfPair(uint32_t x) {
  uint32_t y;
  asm("ex2.approx.f16x2 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_EXP_INSTRUCTIONS_CUH_
