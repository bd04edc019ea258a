// Online softmax of a warpgroup's scores in registers. A thread holds two rows
// (rows g and g + 8 of its warp, g = lane / 4) and the four lanes of a quad hold a
// row between them.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

namespace warpledger::sdpa {

__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two fp32 to one register of fp16, `low` in the lower half.
__device__ inline uint32_t PackHalves(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// The running state of two rows, in raw score units.
struct RowPairSoftmax {
  float max[2];
  float sum[2];  // of this thread's columns alone until Finish

  __device__ RowPairSoftmax() : max{-INFINITY, -INFINITY}, sum{0.0f, 0.0f} {}

  // Turns `scores`, (64, kCount * 2) of the warpgroup, into probabilities; adds to
  // the sums; returns in `rescale` what the earlier output must be multiplied by.
  //   scale_log2: softmax scale times log2(e)
  template <int kCount>
  __device__ void Update(float (&scores)[kCount], float scale_log2, float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Two chains: fmaxf is a dependent instruction of a few cycles.
      float even = max[r];
      float odd = max[r];
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        even = fmaxf(even, scores[i + 2 * r]);
        odd = fmaxf(odd, scores[i + 2 * r + 1]);
      }
      float row_max = fmaxf(even, odd);
      row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffffu, row_max, 1));
      row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffffu, row_max, 2));
      // A row that saw no key yet has maximum -inf; 0 keeps exp of it at 0.
      const float subtract = row_max == -INFINITY ? 0.0f : row_max * scale_log2;
      rescale[r] = Exp2(max[r] * scale_log2 - subtract);
      max[r] = row_max;
      float sum_even = sum[r] * rescale[r];
      float sum_odd = 0.0f;
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        scores[i + 2 * r] = Exp2(fmaf(scores[i + 2 * r], scale_log2, -subtract));
        scores[i + 2 * r + 1] = Exp2(fmaf(scores[i + 2 * r + 1], scale_log2, -subtract));
        sum_even += scores[i + 2 * r];
        sum_odd += scores[i + 2 * r + 1];
      }
      sum[r] = sum_even + sum_odd;
    }
  }

  // Completes the sums over the quad.
  __device__ void Finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    }
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_
