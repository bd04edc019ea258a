// SPDX-License-Identifier: Apache-2.0
// The barrier among the threads that compute.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_BARRIER_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_BARRIER_CUH_

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/shape.h"

namespace warpledger::sdpa::smem {

// The CTA's named barriers; 0 is __syncthreads.
enum SmemNamedBarrier { kComputeBarrier = 1 };

// __syncthreads counts every thread of the CTA; producer warps never come to it.
template <Config kConfig>
__device__ void ComputeBarrier() {
  if constexpr (kConfig.producer_warps > 0) {
    ptx::NamedBarrierSync(kComputeBarrier, ComputeThreads(kConfig));
  } else {
    __syncthreads();
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_BARRIER_CUH_
