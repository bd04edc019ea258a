// SPDX-License-Identifier: Apache-2.0
// Exchange among a quad: the four lanes that hold a row of an accumulator.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_QUAD_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_QUAD_CUH_

#include <cstdint>

namespace warpledger::sdpa {

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

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_QUAD_CUH_
