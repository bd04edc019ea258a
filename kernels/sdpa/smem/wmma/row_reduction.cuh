// SPDX-License-Identifier: Apache-2.0
// Maxima and sums of a fragment's rows, in registers.
//
// A lane holds elements of two rows, which four neighbouring lanes share
// (fragment_layout.h): it reduces its own, then two shuffles do the rest.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_ROW_REDUCTION_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_ROW_REDUCTION_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/shared/quad.cuh"
#include "kernels/sdpa/smem/schedule.cuh"
#include "kernels/sdpa/smem/softmax.cuh"
#include "kernels/sdpa/smem/wmma/fragment_layout.h"

namespace warpledger::sdpa::smem {

static_assert(kLanesOfRow == 4, "a quad");

// Writes the maxima of a block's 16 rows over the keys that they see, scaled.
//   maxima: 16 fp32; row: of the block's first row within the CTA's tile;
//   first_key: of the block's first column
template <typename Accumulator>
__device__ void StoreBlockMaxima(float* maxima, const Accumulator& scores, float scale,
                                 const Work& work, int row, int first_key) {
  static_assert(Accumulator::num_elements == kAccumulatorElements);
  const int lane = threadIdx.x % kWarpSize;
  float max[kRowsOfLane] = {NegativeInfinity(), NegativeInfinity()};
#pragma unroll
  for (int i = 0; i < kAccumulatorElements; ++i) {
    const FragmentPlace place = AccumulatorPlace(lane, i);
    const int r = AccumulatorRowOfLane(i);
    if (first_key + place.col < work.VisibleKeys(row + place.row)) {
      max[r] = fmaxf(max[r], scores.x[i] * scale);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsOfLane; ++r) {
    max[r] = QuadMax(max[r]);
    if (lane % kLanesOfRow == 0) maxima[FirstRowOfLane(lane) + 8 * r] = max[r];
  }
}

// Adds what the lane holds of each of its rows.
template <typename MatrixA>
__device__ void AddRows(float (&sum)[kRowsOfLane], const MatrixA& p) {
  static_assert(MatrixA::num_elements == kMatrixAElements);
#pragma unroll
  for (int i = 0; i < kAccumulatorElements; ++i) {  // the other eight are copies
    sum[AccumulatorRowOfLane(i)] += __half2float(p.x[i]);
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_ROW_REDUCTION_CUH_
