// SPDX-License-Identifier: Apache-2.0
// Four columns of a row of O, joined from the parts that several CTAs left.
//
// Parts combine as in flash-decoding: with M the largest of the parts' maxima m_i,
// O = sum(exp(m_i - M) O_i) / sum(exp(m_i - M) l_i). What was joined is a part again.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_JOINED_PIECE_CUH_
#define WARPLEDGER_KERNELS_SDPA_SHARED_JOINED_PIECE_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/sdpa/shared/exp.cuh"

namespace warpledger::sdpa {

struct JoinedPiece {
  float largest = -INFINITY;
  float sum = 0.0f;
  float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  //   stats: of each part the maximum and the sum; -inf and 0 stand for no part, whose columns must
  //          be 0
  //   weights: makes of the largest maximum what makes of a part's maximum its weight: exp() of how
  //            far it is below
  template <int kParts, typename Weights>
  __device__ void Add(const float2 (&stats)[kParts], const float4 (&parts)[kParts],
                      const Weights& weights) {
    float most = largest;
#pragma unroll
    for (int s = 0; s < kParts; ++s) most = fmaxf(most, stats[s].x);
    const auto weight_of = weights(most);
    const float earlier = weight_of(largest);
    float all = sum * earlier;
    float4 columns = make_float4(x.x * earlier, x.y * earlier, x.z * earlier, x.w * earlier);
#pragma unroll
    for (int s = 0; s < kParts; ++s) {
      const float weight = weight_of(stats[s].x);
      all = fmaf(weight, stats[s].y, all);
      columns.x = fmaf(weight, parts[s].x, columns.x);
      columns.y = fmaf(weight, parts[s].y, columns.y);
      columns.z = fmaf(weight, parts[s].z, columns.z);
      columns.w = fmaf(weight, parts[s].w, columns.w);
    }
    largest = most;
    sum = all;
    x = columns;
  }

  // Of maxima of raw scores. Rounded as in the parts' own sums (wgmma/softmax.cuh), not fused:
  // exactly one for the largest.
  template <int kParts>
  __device__ void Add(const float2 (&stats)[kParts], const float4 (&parts)[kParts],
                      float softmax_scale) {
    const float scale_log2 = softmax_scale * SoftmaxExp<ExpMethod::kExpFolded>::kLog2E;
    Add(stats, parts, [scale_log2](float most) {
      // Nothing seen yet: all weights are 0.
      const float subtract = most == -INFINITY ? 0.0f : __fmul_rn(most, scale_log2);
      return [scale_log2, subtract](float part_max) {
        return Exp2Approx(__fmul_rn(part_max, scale_log2) - subtract);
      };
    });
  }

  // To columns 4 `quad` and on of `row`, over all of O; LSE with the first of them.
  //   softmax_scale: of raw maxima
  template <int kHeadDim, bool kBf16>
  __device__ void Store(void* o, float* lse, int64_t row, int quad, float softmax_scale) const {
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    auto* to = reinterpret_cast<uint2*>(static_cast<uint16_t*>(o) + row * kHeadDim);
    to[quad] = make_uint2(PackPair<kBf16>(x.x * inverse, x.y * inverse),
                          PackPair<kBf16>(x.z * inverse, x.w * inverse));
    if (quad == 0 && lse != nullptr) lse[row] = largest * softmax_scale + logf(sum);
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_JOINED_PIECE_CUH_
