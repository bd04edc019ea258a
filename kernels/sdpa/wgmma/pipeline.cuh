// SPDX-License-Identifier: Apache-2.0
// The barriers between the producer and the consumer warpgroups.
//
// Q has one buffer, K and V a ring of `stages` buffers each. "Full" completes when
// TMA has delivered a tile, "empty" when every warp that reads it is
// done. Tiles are counted over the CTA's whole life: tile i lies in slot i % stages
// and completes phase i / stages. The work slots hand query tiles from the producer
// to the consumers under the dynamic schedule.
//
// 8-bit V takes a detour: TMA fills a ring of its own ("raw"), of which the
// producer's other warps fill V's, transposed.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_PIPELINE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_PIPELINE_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// The CTA's named barriers; 0 is __syncthreads. Of turns and of the epilogue each warpgroup that
// computes has one of its own, its number further on.
inline constexpr int kMaxConsumers = 3;
enum WgmmaNamedBarrier {
  kTurnBarrier = 1,
  kEpilogueBarrier = kTurnBarrier + kMaxConsumers,
  kJoinBarrier = kEpilogueBarrier + kMaxConsumers,  // all threads that compute
};

// Addresses of the barriers in the shared window.
template <WgmmaShape kShape>
struct WgmmaBarriers {
  uint32_t base;

  __device__ uint32_t QFull() const { return base; }
  __device__ uint32_t QEmpty() const { return base + 8; }
  __device__ uint32_t KFull(int slot) const { return base + 16 + 8 * slot; }
  __device__ uint32_t KEmpty(int slot) const { return KFull(slot) + 8 * KStages(kShape); }
  __device__ uint32_t VFull(int slot) const { return KFull(slot) + 16 * KStages(kShape); }
  __device__ uint32_t VEmpty(int slot) const { return VFull(slot) + 8 * kShape.stages; }
  __device__ uint32_t WorkFull(int slot) const { return VFull(slot) + 16 * kShape.stages; }
  __device__ uint32_t WorkEmpty(int slot) const { return WorkFull(slot) + 8 * kWorkSlots; }
  __device__ uint32_t WorkTile(int slot) const {
    if constexpr (kShape.varlen) return WorkFull(2 * kWorkSlots) + kPackedWorkBytes * slot;
    return WorkFull(slot) + 16 * kWorkSlots;
  }

  // With fp8.
  __device__ uint32_t RawFull(int slot) const {
    return KFull(slot) + 32 * kShape.stages + 24 * kWorkSlots;
  }
  __device__ uint32_t RawEmpty(int slot) const { return RawFull(slot) + 8 * kShape.stages; }

  // One thread; a CTA barrier follows.
  __device__ void Init() const {
    constexpr int kConsumerWarps = kShape.consumers * 4;
    // A K/V tile is filled by the producers of a whole cluster, so each of them waits for
    // the consumers of all its CTAs.
    constexpr int kReaders = kConsumerWarps * kShape.cluster;
    // Each producing thread says for itself that its copies have arrived.
    constexpr int kFillers = kShape.cp_async ? kWarpgroup : 1;
    ptx::MbarrierInit(QFull(), 1);
    ptx::MbarrierInit(QEmpty(), kConsumerWarps);
#pragma unroll 1
    for (int i = 0; i < KStages(kShape); ++i) {
      ptx::MbarrierInit(KFull(i), kFillers);
      ptx::MbarrierInit(KEmpty(i), kReaders);
      if (KStages(kShape) > kShape.stages && i >= kShape.stages) continue;
      ptx::MbarrierInit(VFull(i), kShape.fp8 ? kTransposingWarps : kFillers);
      // 8-bit V is filled by the CTA's own warps; what they read, by all producers.
      ptx::MbarrierInit(VEmpty(i), kShape.fp8 ? kConsumerWarps : kReaders);
      if constexpr (kShape.fp8) {
        ptx::MbarrierInit(RawFull(i), 1);
        ptx::MbarrierInit(RawEmpty(i), kTransposingWarps * kShape.cluster);
      }
    }
    if constexpr (kShape.dynamic_schedule) {
      for (int i = 0; i < kWorkSlots; ++i) {
        ptx::MbarrierInit(WorkFull(i), 1);
        constexpr int kOfOneCta = kConsumerWarps + (kShape.fp8 ? kTransposingWarps : 0);
        // In a cluster the producers read numbers too.
        ptx::MbarrierInit(WorkEmpty(i),
                          kShape.cluster == 1 ? kOfOneCta : (kOfOneCta + 1) * kShape.cluster);
      }
    }
    ptx::MbarrierInitFence();
  }
};

// A place in a ring of kSlots.
template <int kSlots>
struct RingCursor {
  int slot = 0;
  uint32_t phase = 0;

  __device__ void Advance() {
    if (++slot == kSlots) {
      slot = 0;
      phase ^= 1;
    }
  }
  // Back to the first of the last `places`, at most kSlots.
  __device__ void Rewind(int places) {
    slot -= places;
    if (slot < 0) {
      slot += kSlots;
      phase ^= 1;
    }
  }
  // The place before this one.
  __device__ RingCursor Before() const {
    return slot == 0 ? RingCursor{kSlots - 1, phase ^ 1} : RingCursor{slot - 1, phase};
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_PIPELINE_CUH_
