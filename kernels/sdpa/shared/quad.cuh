// SPDX-License-Identifier: Apache-2.0
// Among a quad: the four lanes that hold a row of an accumulator between them, of mma.sync's and
// of wgmma's. Lane l of a warp holds pieces of the rows g and g + 8, g = l / 4: of each eight
// columns the pair 2 (l % 4), 2 (l % 4) + 1. The whole warp calls these.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_QUAD_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_QUAD_CUH_

#include <cstdint>

namespace warpledger::sdpa {

__device__ inline float QuadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float QuadSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Transposes the 4x4 matrix whose row `lane` (of the quad) is `x`.
__device__ inline void TransposeQuad(uint32_t (&x)[4], int lane) {
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

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_QUAD_CUH_
