// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/shared/exp_instructions.cuh on the CPU.

#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {

inline float Exp2Approx(float x) { return std::exp2(x); }
inline uint32_t PackHalfPair(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  uint32_t packed;
  std::memcpy(&packed, &pair, 4);
  return packed;
}
// These do not run here.
uint32_t PackBf16Pair(float low, float high);
uint32_t Exp2HalfPair(uint32_t x);

}  // namespace warpledger::sdpa
