// SPDX-License-Identifier: Apache-2.0
// The barriers of a CTA: named ones, and those between warps that only copy and those that compute.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_BARRIERS_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_BARRIERS_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"

namespace warpledger::sdpa {

// The CTA's named barriers; 0 is __syncthreads. Producer warps feed a single group of warps, so
// that a kernel has the one or the others.
enum MmaNamedBarrier {
  kConsumerBarrier = 1,  // all threads that compute
  kGroupBarrier = 1,     // a group of warps, its number further on
};

// mbarriers of the specialised pipeline.
struct ProducerBarriers {
  uint32_t base;
  int stages;

  __device__ uint32_t KFull(int slot) const { return base + slot * 8; }
  __device__ uint32_t VFull(int slot) const { return base + (stages + slot) * 8; }
  __device__ uint32_t Empty(int slot) const { return base + (2 * stages + slot) * 8; }

  // One thread.
  __device__ void Init(int producer_threads, int consumer_threads) const {
    for (int slot = 0; slot < stages; ++slot) {
      ptx::MbarrierInit(KFull(slot), producer_threads);
      ptx::MbarrierInit(VFull(slot), producer_threads);
      ptx::MbarrierInit(Empty(slot), consumer_threads);
    }
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_BARRIERS_CUH_
