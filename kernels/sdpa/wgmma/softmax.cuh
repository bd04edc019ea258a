// SPDX-License-Identifier: Apache-2.0
// Online softmax of a warpgroup's scores in registers. A thread holds two rows
// (rows g and g + 8 of its warp, g = lane / 4) and the four lanes of a quad hold a
// row between them.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/shared/quad.cuh"
#include "kernels/sdpa/shared/scores.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// How far, as a power of two, a row's scores may rise above the maximum that its
// probabilities are taken against before O and the sum are rescaled: probabilities stay
// below 2^8, far from fp16's largest. The final division makes it exact.
inline constexpr float kLazyRiseLog2 = 8.0f;

// Probabilities for E4M3 are 2^8 times as large: up to 256, of 448 that it can hold, so that
// those of 2^-17 are not 0 yet. The final division takes it back (FlashAttention-3's code
// does so).
inline constexpr int kFp8RiseLog2 = 8;

// The running state of two rows, in raw score units.
//   kMethod: the exponential (exp_method.h). Pairs of halves are widened, for the sum, and
//       packed again when P V in flight has read P's registers: if they stay packed until then,
//       ptxas runs out of registers for products in flight and serialises them (C7511)
//   kRescale: unless kEachTile, the maximum is left where it is until some row of the warp
//       outgrows it
//   kForFp8: probabilities and sums are 2^kFp8RiseLog2 times as large
template <ExpMethod kMethod, WgmmaRescale kRescale, bool kForFp8 = false>
struct RowPairSoftmax {
  static constexpr bool kHalfPairs = kMethod == ExpMethod::kExpHalfPairs;
  static_assert(!kForFp8 || (InLog2Units(kMethod) && !kHalfPairs), "raised by a power of two");
  static constexpr bool kLazy = kRescale != WgmmaRescale::kEachTile;
  // Of E4M3's range, what is given to rises is lost to small probabilities: 2^4 of it is too much
  // on inputs with outliers (reports/decisions/0027).
  static_assert(!(kForFp8 && kLazy), "both raise probabilities, and E4M3 ends at 448");
  using Exp = SoftmaxExp<kMethod>;

  float max[2];
  float sum[2];  // of this thread's columns alone until Finish

  __device__ RowPairSoftmax() : max{-INFINITY, -INFINITY}, sum{0.0f, 0.0f} {}

  struct Nothing {
    __device__ void operator()() const {}
  };

  // Turns `scores`, (64, kCount * 2) of the warpgroup, into probabilities; adds to
  // the sums; sets in `rescale` what the earlier output must be multiplied by. Returns
  // false, the same in all lanes, where that changes nothing: by ones, or in rows without
  // a key so far, whose output is 0.
  //   scale: Exp::Scale of what multiplies scores
  //   between: is called once the first row is done
  template <int kCount, typename Between>
  __device__ bool Update(float (&scores)[kCount], float scale, float (&rescale)[2],
                         const Between& between) {
    if constexpr (kRescale == WgmmaRescale::kThreadRises || kRescale == WgmmaRescale::kSumRises) {
      return UpdateByThread(scores, scale, rescale, between);
    } else {
      return UpdateByRow(scores, scale, rescale, between);
    }
  }

  template <int kCount>
  __device__ bool Update(float (&scores)[kCount], float scale, float (&rescale)[2]) {
    return Update(scores, scale, rescale, Nothing{});
  }

  // From here on scores are multiplied by `factor`. A maximum of -inf stays.
  __device__ void ChangeUnits(float factor) {
    max[0] *= factor;
    max[1] *= factor;
  }

  // The sum of row r, for the log-sum-exp. Behind Finish.
  __device__ float PlainSum(int r) const {
    return kForFp8 ? sum[r] * (1.0f / (1 << kFp8RiseLog2)) : sum[r];
  }

  // With kSumRises, in place of Update where a row has a maximum already: turns `scores` into
  // probabilities against the maxima as they are. Returns whether no row of this thread has
  // outgrown its maximum; AddSums(tile_sum) is to follow then. Else the scores are lost. A sum of
  // numbers above 0 is at least the largest of them; with a maximum of -inf it is infinity or NaN.
  template <int kCount>
  __device__ bool TakeOldMaxima(float (&scores)[kCount], float scale, float (&tile_sum)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      tile_sum[r] = SumOfExponentials(scores, r, scale, -__fmul_rn(max[r], scale), 0.0f);
    }
    return tile_sum[0] <= kMostOfRisen && tile_sum[1] <= kMostOfRisen;
  }
  __device__ void AddSums(const float (&tile_sum)[2]) {
    sum[0] += tile_sum[0];
    sum[1] += tile_sum[1];
  }

  // As Update, whether a row rises or not.
  template <int kCount>
  __device__ void TakeNewMaxima(float (&scores)[kCount], float scale, float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float row_max = QuadMax(ThreadMax(scores, r, max[r]));
      RebasedExponentials(scores, scale, r, row_max, rescale[r]);
    }
  }

  // Completes the sums over the quad.
  __device__ void Finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] = QuadSum(sum[r]);
      // The polynomial's smallest number is not 0.
      if (kMethod == ExpMethod::kExpMixed && max[r] == -INFINITY) sum[r] = 0.0f;
    }
  }

 private:
  // In units of scaled scores.
  static constexpr float kLazyRise =
      InLog2Units(kMethod) ? kLazyRiseLog2 : kLazyRiseLog2 / Exp::kLog2E;
  // A probability at that rise.
  static constexpr float kMostOfRisen = 1 << static_cast<int>(kLazyRiseLog2);

  template <int kCount, typename Between>
  __device__ bool UpdateByRow(float (&scores)[kCount], float scale, float (&rescale)[2],
                              const Between& between) {
    // Both maxima first where something is asked of them, or where what stands between the rows
    // would keep the second one's shuffles, and the wait for them, behind it.
    constexpr bool kMaximaFirst = kLazy || !std::is_same_v<Between, Nothing>;
    bool rises = !kLazy;
    float row_max[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row_max[r] = QuadMax(ThreadMax(scores, r, max[r]));
      // From -inf too; both -inf compare false.
      if (kLazy) rises = rises || (row_max[r] - max[r]) * scale > kLazyRise;
      if (!kMaximaFirst) RebasedExponentials(scores, scale, r, row_max[r], rescale[r]);
    }
    if constexpr (kLazy) rises = __any_sync(0xffffffffu, rises);
    if constexpr (kMaximaFirst) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        RebasedExponentials(scores, scale, r, rises ? row_max[r] : max[r], rescale[r]);
        if (r == 0) between();
      }
    }
    return rises;
  }

  // As Update. The quads' maxima, two shuffles one after another for each row, are asked for only
  // where a thread's own part of a row outgrows the row's.
  template <int kCount, typename Between>
  __device__ bool UpdateByThread(float (&scores)[kCount], float scale, float (&rescale)[2],
                                 const Between& between) {
    const float thread_max[2] = {ThreadMax(scores, 0, max[0]), ThreadMax(scores, 1, max[1])};
    const bool rises = __any_sync(0xffffffffu, (thread_max[0] - max[0]) * scale > kLazyRise ||
                                                   (thread_max[1] - max[1]) * scale > kLazyRise);
    rescale[0] = rescale[1] = 1.0f;
    if (rises) {
#pragma unroll
      for (int r = 0; r < 2; ++r) rescale[r] = Rebase(QuadMax(thread_max[r]), scale, r);
    }
    Exponentials(scores, scale, 0, Subtrahend(max[0], scale), sum[0]);
    between();
    Exponentials(scores, scale, 1, Subtrahend(max[1], scale), sum[1]);
    return rises;
  }

  // A row that saw no key yet has maximum -inf; 0 keeps exp of it at 0.
  __device__ static float Subtrahend(float row_max, float scale) {
    return row_max == -INFINITY ? 0.0f : __fmul_rn(row_max, scale);
  }
  // What earlier sums of row r are multiplied by when another maximum, as `subtract`, is taken.
  // Rounded as `subtract` is, not fused: exactly one where the maximum stays, however many
  // tiles follow. With lazy rescaling O is not multiplied then, but the sum is.
  __device__ float RescaleTo(float subtract, float scale, int r) const {
    return Exp::Rescale(__fmul_rn(max[r], scale) - subtract);
  }
  // Makes new_max row r's maximum; returns what the sum was multiplied by.
  __device__ float Rebase(float new_max, float scale, int r) {
    const float rescale = RescaleTo(Subtrahend(new_max, scale), scale, r);
    max[r] = new_max;
    sum[r] *= rescale;
    return rescale;
  }

  // Of row r, against new_max, which becomes the row's maximum.
  template <int kCount>
  __device__ void RebasedExponentials(float (&scores)[kCount], float scale, int r, float new_max,
                                      float& rescale) {
    const float subtract = Subtrahend(new_max, scale);
    rescale = RescaleTo(subtract, scale, r);
    max[r] = new_max;
    Exponentials(scores, scale, r, subtract, sum[r] * rescale);
  }

  // Of row r; with its earlier sum, sum_even, they become the sum.
  template <int kCount>
  __device__ void Exponentials(float (&scores)[kCount], float scale, int r, float subtract,
                               float sum_even) {
    const float shift = kForFp8 ? kFp8RiseLog2 - subtract : -subtract;
    sum[r] = SumOfExponentials(scores, r, scale, shift, sum_even);
  }

  // Of row r, in place, of scores times `scale` plus `shift`; returns sum_even and their sum.
  template <int kCount>
  __device__ static float SumOfExponentials(float (&scores)[kCount], int r, float scale,
                                            float shift, float sum_even) {
    float sum_odd = 0.0f;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      float& even = scores[i + 2 * r];
      float& odd = scores[i + 2 * r + 1];
      if constexpr (kHalfPairs) {
        const uint32_t pair =
            Exp2HalfPair(PackHalfPair(fmaf(even, scale, shift), fmaf(odd, scale, shift)));
        const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pair));
        even = wide.x;
        odd = wide.y;
      } else {
        even = Exp::Of(fmaf(even, scale, shift), i / 2);
        odd = Exp::Of(fmaf(odd, scale, shift), i / 2 + 1);
      }
      sum_even += even;
      sum_odd += odd;
    }
    return sum_even + sum_odd;
  }
};

template <WgmmaShape kShape>
using WgmmaSoftmax = RowPairSoftmax<kShape.exp, kShape.rescale, kShape.fp8>;

// What stands before the scores and behind the sums of a tile of queries.
struct WgmmaScales {
  float score;  // the softmax's, and Q's and K's
  float out;    // V's
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SOFTMAX_CUH_
