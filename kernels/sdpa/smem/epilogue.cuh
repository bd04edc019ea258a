// SPDX-License-Identifier: Apache-2.0
// What every family does once the K/V loop is over.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_EPILOGUE_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_EPILOGUE_CUH_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/softmax.cuh"

namespace warpledger::sdpa::smem {

// 1 / sum, and 0 for a row that saw no key, whose output is 0 by definition.
__device__ inline float InverseSum(float row_sum) { return row_sum > 0.0f ? 1.0f / row_sum : 0.0f; }

// Writes the rows' log-sum-exp in natural-log units; -inf where no key is seen.
template <Config kConfig>
__device__ void StoreLse(const SoftmaxState<kConfig>& s, const Work& work) {
  if (work.lse == nullptr) return;
  for (int row = threadIdx.x; row < work.rows; row += ComputeThreads(kConfig)) {
    work.lse[row] = RowExp<kConfig>::LogSumExp(s.row_max[row], s.row_sum[row]);
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_EPILOGUE_CUH_
