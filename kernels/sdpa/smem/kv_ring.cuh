// SPDX-License-Identifier: Apache-2.0
// K/V tiles through a ring of slots in shared memory, copied by warps that do nothing
// else. Each slot has two mbarriers: `full`, completed by the producers' copies
// themselves (cp.async.mbarrier.arrive), and `empty`, by the arrivals of the computing
// threads. A wait on an mbarrier orders the memory that was written before the arrivals;
// a flag in shared memory, volatile or not, orders nothing.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_KV_RING_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_KV_RING_CUH_

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/schedule.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa::smem {

// Same interface as KvPipeline, for the computing warps; Acquire holds no barrier
// among them. Produce is the producer warps' whole life.
template <Config kConfig>
class KvRing {
 public:
  __device__ KvRing(unsigned char* smem, const Work& work) : smem_(smem), work_(work) {}

  // One thread; a barrier of the whole CTA before anyone else uses the ring.
  __device__ void Init() const {
    for (int slot = 0; slot < kStages; ++slot) {
      ptx::MbarrierInit(Full(slot), kProducers);
      ptx::MbarrierInit(Empty(slot), ComputeThreads(kConfig));
    }
  }

  __device__ void Produce() const {
    const int thread = threadIdx.x - ComputeThreads(kConfig);
    for (int tile = 0; tile < work_.kv_tiles; ++tile) {
      const int slot = tile % kStages;
      ptx::MbarrierSpin(Empty(slot), tile / kStages % 2 ^ 1);
      const int first_key = tile * TileN(kConfig);
      const int valid = work_.seq_kv - first_key;
      const int64_t offset = int64_t{first_key} * kConfig.head_dim;
      CopyTileAsync<kConfig, TileN(kConfig), kProducers>(Slot(kSmem.k, slot), work_.k + offset,
                                                         valid, thread);
      CopyTileAsync<kConfig, TileN(kConfig), kProducers>(Slot(kSmem.v, slot), work_.v + offset,
                                                         valid, thread);
      ptx::CpAsyncMbarrierArrive(Full(slot));
    }
    ptx::CpAsyncWaitAll();  // no copy outlives its thread
  }

  __device__ KvTile Acquire(int tile) const {
    const int slot = tile % kStages;
    ptx::MbarrierSpin(Full(slot), tile / kStages % 2);
    return {Slot(kSmem.k, slot), Slot(kSmem.v, slot), kSmem.ld_tile, tile * TileN(kConfig)};
  }

  // The calling thread has read the tile. One arrival per warp, behind a __syncwarp,
  // is no faster, and racecheck can't follow it.
  __device__ void Release(int tile) const { ptx::MbarrierArrive(Empty(tile % kStages)); }

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  static constexpr int kStages = Stages(kConfig);
  static constexpr int kProducers = Threads(kConfig) - ComputeThreads(kConfig);
  static constexpr int kBarrierBytes = 8;

  __device__ uint32_t Full(int slot) const {
    return ptx::SharedAddress(smem_ + kSmem.ring) + slot * kBarrierBytes;
  }
  __device__ uint32_t Empty(int slot) const { return Full(kStages + slot); }
  __device__ half* Slot(int base, int slot) const {
    return reinterpret_cast<half*>(smem_ + base) + slot * kSmem.kv_slot;
  }

  unsigned char* smem_;
  const Work& work_;
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_KV_RING_CUH_
