// SPDX-License-Identifier: Apache-2.0
// fp16 elements to fp32 registers, one at a time or eight in 16 bytes.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_VECTOR_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_VECTOR_CUH_

#include <cuda_fp16.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/copy.cuh"

namespace warpledger::sdpa::smem {

// Elements that a thread of the SIMT parts moves per instruction.
template <Config kConfig>
constexpr int SimtVector() {
  return kConfig.vector_loads ? kVectorHalves : 1;
}

// Reads kVec consecutive fp16 (16-byte aligned where kVec is 8).
template <int kVec>
__device__ void LoadVector(float (&out)[kVec], const half* from) {
  static_assert(kVec == 1 || kVec == kVectorHalves);
  if constexpr (kVec == 1) {
    out[0] = __half2float(*from);
  } else {
    const uint4 chunk = *reinterpret_cast<const uint4*>(from);
    const half2* pairs = reinterpret_cast<const half2*>(&chunk);
#pragma unroll
    for (int i = 0; i < kVec / 2; ++i) {
      const float2 pair = __half22float2(pairs[i]);
      out[2 * i] = pair.x;
      out[2 * i + 1] = pair.y;
    }
  }
}

// Writes kVec consecutive fp16, rounded to nearest.
template <int kVec>
__device__ void StoreVector(half* to, const float (&values)[kVec]) {
  static_assert(kVec == 1 || kVec == kVectorHalves);
  if constexpr (kVec == 1) {
    *to = __float2half_rn(values[0]);
  } else {
    uint4 chunk;
    half2* pairs = reinterpret_cast<half2*>(&chunk);
#pragma unroll
    for (int i = 0; i < kVec / 2; ++i) {
      pairs[i] = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
    }
    *reinterpret_cast<uint4*>(to) = chunk;
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_VECTOR_CUH_
