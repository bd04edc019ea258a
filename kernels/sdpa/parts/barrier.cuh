// SPDX-License-Identifier: Apache-2.0
// The barrier among the threads that compute.

#ifndef WARPLEDGER_KERNELS_SDPA_PARTS_BARRIER_CUH_
#define WARPLEDGER_KERNELS_SDPA_PARTS_BARRIER_CUH_

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/config.h"
#include "kernels/sdpa/geometry.h"

namespace warpledger::sdpa {

// __syncthreads counts every thread of the CTA; producer warps never come to it.
template <Config kConfig>
__device__ void ComputeBarrier() {
  if constexpr (kConfig.producer_warps > 0) {
    ptx::NamedBarrierSync(1, ComputeThreads(kConfig));
  } else {
    __syncthreads();
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PARTS_BARRIER_CUH_
