// SPDX-License-Identifier: Apache-2.0
// Online softmax of a warp's scores in registers. A lane holds rows g and g + 8 of
// each block of 16 (g = lane / 4), and the four lanes of a quad hold a row between
// them.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_SOFTMAX_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_SOFTMAX_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/shared/quad.cuh"

namespace warpledger::sdpa {

// How far, in log2 units, a row's maximum may rise before the output is rescaled:
// the probabilities are then at most 2^8, far from fp16's end.
inline constexpr float kLazyRescaleLog2 = 8.0f;

template <MmaShape kShape>
class MmaSoftmax {
 public:
  static constexpr int kRowBlocks = kShape.rows_per_warp / 16;
  static constexpr int kKeyBlocks = kShape.tile_n / 8;
  using Exp = SoftmaxExp<kShape.exp, kShape.bf16>;
  using Scores = float[kRowBlocks][kKeyBlocks][4];
  using Probs = uint32_t[kRowBlocks][kKeyBlocks][2];  // packed pairs: rows g, g + 8

  __device__ explicit MmaSoftmax(float softmax_scale) : scale_(Exp::Scale(softmax_scale)) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        max_[b][r] = -INFINITY;
        sum_[b][r] = 0.0f;
        shift_[b][r] = 0.0f;
      }
    }
  }

  // Takes one tile's scores into the running maxima. True when the earlier output
  // must be multiplied by `rescale`; the answer is the same for the whole warp.
  __device__ bool UpdateMax(const Scores& scores, float (&rescale)[kRowBlocks][2]) {
    float tile_max[kRowBlocks][2];
    bool rises = false;
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        // Two chains, as fmaxf takes a few cycles.
        float even = max_[b][r];
        float odd = max_[b][r];
#pragma unroll
        for (int n = 0; n < kKeyBlocks; ++n) {
          even = fmaxf(even, scores[b][n][2 * r]);
          odd = fmaxf(odd, scores[b][n][2 * r + 1]);
        }
        const float row_max = QuadMax(fmaxf(even, odd));
        tile_max[b][r] = row_max;
        if constexpr (kShape.lazy_rescale) {
          constexpr float kThreshold =
              InLog2Units(kShape.exp) ? kLazyRescaleLog2 : kLazyRescaleLog2 / Exp::kLog2E;
          // From -infinity too; both -infinity compare false.
          rises = rises || (row_max - max_[b][r]) * scale_ > kThreshold;
        }
      }
    }
    if constexpr (kShape.lazy_rescale) {
      if (!__any_sync(0xffffffffu, rises)) return false;
    }
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float new_max = tile_max[b][r];
        // A row that saw no key yet has maximum -infinity; 0 keeps exp of it at 0.
        const float finite_max = new_max == -INFINITY ? 0.0f : new_max;
        shift_[b][r] = finite_max * scale_;
        // From the difference: exactly one where the maximum stays, however many tiles follow.
        rescale[b][r] = Exp::Rescale((max_[b][r] - finite_max) * scale_);
        sum_[b][r] *= rescale[b][r];
        max_[b][r] = new_max;
      }
    }
    return true;
  }

  // From now on probabilities are multiplied by `weight`, at most 1, for values that are
  // `weight` of what their numbers say; the sums stay those of the probabilities alone.
  // With a scale per K/V tile.
  __device__ void SetTileWeight(float weight) {
    weight_shift_ = InLog2Units(kShape.exp) ? __log2f(weight) : __logf(weight);
    inverse_weight_ = __fdividef(1.0f, weight);
  }

  // The probabilities of key blocks [first, last) of that tile, and their sums.
  __device__ void Exponentials(const Scores& scores, int first, int last, Probs& probs) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float offset = kShape.kv_block_scale ? weight_shift_ - shift_[b][r] : -shift_[b][r];
        float sum = 0.0f;
#pragma unroll
        for (int n = first; n < last; ++n) {
          const float x0 = fmaf(scores[b][n][2 * r], scale_, offset);
          const float x1 = fmaf(scores[b][n][2 * r + 1], scale_, offset);
          probs[b][n][r] = Exp::Pair(x0, x1, 2 * n, &sum);
        }
        sum_[b][r] += kShape.kv_block_scale ? sum * inverse_weight_ : sum;
      }
    }
  }

  // Completes the sums over the quads.
  __device__ void Finish() {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum_[b][r] = QuadSum(sum_[b][r]);
        // The polynomial's smallest number is not 0.
        if (max_[b][r] == -INFINITY) sum_[b][r] = 0.0f;
      }
    }
  }

  // A row's maximum in Exp's units, and its sum, once finished.
  __device__ float ScaledMax(int block, int half) const { return max_[block][half] * scale_; }
  __device__ float Sum(int block, int half) const { return sum_[block][half]; }

 private:
  const float scale_;
  float max_[kRowBlocks][2];    // of raw scores; lazily kept, a little below
  float shift_[kRowBlocks][2];  // the same in Exp's units; 0 for -infinity
  float weight_shift_ = 0.0f;   // in Exp's units; see SetTileWeight
  float inverse_weight_ = 1.0f;
  float sum_[kRowBlocks][2];  // of this lane's columns until Finish
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_SOFTMAX_CUH_
