// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/shared/exp_instructions.cuh on the CPU.

#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/sdpa/dtype/bf16.h"
#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {

inline float Exp2Approx(float x) { return std::exp2(x); }
inline float ReciprocalApprox(float x) { return 1.0f / x; }
inline uint32_t PackHalfPair(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  uint32_t packed;
  std::memcpy(&packed, &pair, 4);
  return packed;
}
inline uint32_t PackBf16Pair(float low, float high) {
  return FloatToBf16(low) | static_cast<uint32_t>(FloatToBf16(high)) << 16;
}
inline uint32_t PackE4m3(float a, float b, float c, float d) {
  uint32_t packed = 0;
  const float values[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    packed |= uint32_t{FloatToFp8(kE4m3, values[i], Fp8Overflow::kSaturate)} << 8 * i;
  }
  return packed;
}
inline uint32_t Exp2HalfPair(uint32_t x) {
  const auto exp2_of = [](uint32_t half) {
    return std::exp2(Fp16ToFloat(static_cast<Fp16>(half & 0xffff)));
  };
  return PackHalfPair(exp2_of(x), exp2_of(x >> 16));
}

}  // namespace warpledger::sdpa
