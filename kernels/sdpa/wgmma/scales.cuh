// SPDX-License-Identifier: Apache-2.0
// What scores and outputs are multiplied by: the softmax scale, and in 8 bits the scales of codes.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SCALES_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SCALES_CUH_

#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// What a tile's scores and its P V are multiplied by.
struct WgmmaTileScales {
  float k;
  float v;
};

// In 8 bits scores are in units of Q's and K's scales, outputs in those of V's.
template <WgmmaShape kShape>
__device__ WgmmaScales ScalesOf(const WgmmaParamsOf<kShape>& p, const WgmmaWork<kShape>& work) {
  if constexpr (kShape.scale_strides) {
    const ScaleStrides& strides = p.scale_strides;
    const float score = p.softmax_scale * __ldg(p.q_scales + work.head * strides.q_head);
    if constexpr (kShape.block_scale) {
      return {score, 1.0f};
    } else {
      const int at = work.head / p.group_size * strides.kv_head;
      return {score * __ldg(p.k_scales + at), __ldg(p.v_scales + at)};
    }
  } else if constexpr (kShape.fp8) {
    const int kv_head = work.head / p.group_size * (kShape.block_scale ? p.scale_stride : 1);
    return {p.softmax_scale * __ldg(p.q_scales + work.head) * __ldg(p.k_scales + kv_head),
            __ldg(p.v_scales + kv_head)};
  } else {
    return {p.softmax_scale, 1.0f};
  }
}

// Of tile n of keys, in parts of what ScalesOf() has of its head: with strides that is 1.
template <WgmmaShape kShape>
__device__ WgmmaTileScales ScalesOfTile(const WgmmaParamsOf<kShape>& p,
                                        const WgmmaWork<kShape>& work, int n) {
  static_assert(kFp8BlockKeys % kShape.tile_n == 0, "a tile's keys share a scale");
  const int kv_head = work.head / p.group_size;
  const int block = n / (kFp8BlockKeys / kShape.tile_n);
  int at;
  if constexpr (kShape.scale_strides) {
    at = kv_head * p.scale_strides.kv_head + block;
  } else {
    at = kv_head * p.scale_stride + 1 + block;
  }
  return {__ldg(p.k_scales + at), __ldg(p.v_scales + at)};
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SCALES_CUH_
