// SPDX-License-Identifier: Apache-2.0
// The softmax's exponential on the GPU: one class, one method each (exp_method.h).
//
//   using Exp = SoftmaxExp<ExpMethod::kExpFolded>;
//   const float scale = Exp::Scale(softmax_scale);       // once
//   const float shift = row_max * scale;                 // once per row and tile
//   float p = Exp::Of(fmaf(score, scale, -shift), i);    // exp of the scaled difference
//   uint32_t pair = Exp::Pair(x0, x1, i, &sum);          // two, packed; adds both to sum
//
// `index` is the element's position in an unrolled loop, so that the mixed method
// chooses at compile time. Arguments of -infinity give 0, or what rounds to 0 in fp16 (and
// not in bf16: kBf16Exclusions).

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_EXP_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_EXP_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/shared/exp_instructions.cuh"
#include "kernels/sdpa/shared/exp_method.h"

namespace warpledger::sdpa {

template <bool kBf16>
__device__ uint32_t PackPair(float low, float high) {
  if constexpr (kBf16) {
    return PackBf16Pair(low, high);
  } else {
    return PackHalfPair(low, high);
  }
}

template <ExpMethod kMethod, bool kBf16 = false>
struct SoftmaxExp {
  static_assert(!kBf16 || kMethod != ExpMethod::kExpHalfPairs, "half pairs are fp16");
  static constexpr float kLog2E = 1.4426950408889634f;

  // What scores and maxima are multiplied by.
  __device__ static float Scale(float softmax_scale) {
    return InLog2Units(kMethod) ? softmax_scale * kLog2E : softmax_scale;
  }
  // Natural logarithm's units per unit of a scaled score.
  __device__ static float ToNatural() { return InLog2Units(kMethod) ? 1.0f / kLog2E : 1.0f; }

  // The factor between two maxima: few of them, so always in fp32 by MUFU.
  __device__ static float Rescale(float x) {
    return InLog2Units(kMethod) ? Exp2Approx(x) : __expf(x);
  }

  __device__ static float Of(float x, [[maybe_unused]] int index) {
    if constexpr (kMethod == ExpMethod::kExpf) {
      return expf(x);
    } else if constexpr (kMethod == ExpMethod::kExpIntrinsic) {
      return __expf(x);
    } else if constexpr (kMethod == ExpMethod::kExpPolynomial) {
      return Exp2Polynomial(x);
    } else if constexpr (kMethod == ExpMethod::kExpMixed) {
      return index % kMixPeriod == kMixPeriod - 1 ? Exp2Polynomial(x) : Exp2Approx(x);
    } else if constexpr (kMethod == ExpMethod::kExpHalfPairs) {
      return __half2float(
          __ushort_as_half(static_cast<unsigned short>(Exp2HalfPair(PackHalfPair(x, x)))));
    } else {
      return Exp2Approx(x);
    }
  }

  // Elements `index` and `index` + 1. The sum is of the values before they are
  // rounded to 16 bits, but with half pairs, which never were anything else.
  __device__ static uint32_t Pair(float x0, float x1, int index, float* sum) {
    if constexpr (kMethod == ExpMethod::kExpHalfPairs) {
      const uint32_t pair = Exp2HalfPair(PackHalfPair(x0, x1));
      const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pair));
      *sum += wide.x + wide.y;
      return pair;
    } else {
      const float p0 = Of(x0, index);
      const float p1 = Of(x1, index + 1);
      *sum += p0;
      *sum += p1;
      return PackPair<kBf16>(p0, p1);
    }
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_EXP_CUH_
