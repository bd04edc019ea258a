// SPDX-License-Identifier: Apache-2.0
// Without a producer: one thread of the first consumer warpgroup asks TMA for
// tiles, between its own steps.
//
// It runs ahead of the consumers by the ring's depth, over their CTA's tiles in the same
// order, K and V by themselves. It waits for all warps to be done with a slot, its own
// warpgroup's other work meanwhile waiting with it; no warp waits for a load that it has yet
// to ask for, because a slot is refilled only after the tile in it was read by all.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_INLINE_LOADER_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_INLINE_LOADER_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/wgmma/load/tile_load.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

template <WgmmaShape kShape>
class WgmmaInlineLoader {
 public:
  using Barriers = WgmmaBarriers<kShape>;

  __device__ WgmmaInlineLoader(const WgmmaParamsOf<kShape>& p, uint32_t smem, Barriers barriers)
      : p_(p), smem_(smem), barriers_(barriers), keys_(p, barriers), values_(p, barriers) {}

  // One thread, in this order: Start() once; LoadQueries() before each tile of queries that sees a
  // key; LoadK() and LoadV() for each tile of K or V that its warp has let go.
  __device__ void Start() {
#pragma unroll 1
    for (int slot = 0; slot < kShape.stages; ++slot) {
      // Parity 1 of a new barrier is over: nothing to wait for.
      LoadK({slot, 1});
      LoadV({slot, 1});
    }
  }
  //   phase: of Q's full barrier, in which this Q will arrive
  __device__ void LoadQueries(const WgmmaWork<kShape>& work, uint32_t phase) {
    LoadQ<kShape>(p_, smem_, barriers_, work, phase ^ 1);
  }
  //   at: the tile's place, which is the next one's
  __device__ void LoadK(RingCursor<kShape.stages> at) {
    Refill(keys_, &p_.k, smem_ + kSmem.k + at.slot * kSmem.kv_bytes, barriers_.KFull(at.slot),
           barriers_.KEmpty(at.slot), at.phase);
  }
  __device__ void LoadV(RingCursor<kShape.stages> at) {
    Refill(values_, &p_.v, smem_ + kSmem.v + at.slot * kSmem.kv_bytes, barriers_.VFull(at.slot),
           barriers_.VEmpty(at.slot), at.phase);
  }

 private:
  static constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  static_assert(!kShape.dynamic_schedule && kShape.cluster == 1 && !kShape.fp8 && !kShape.split_kv);

  // The K or V tiles of all of the CTA's query tiles, one after another.
  struct Cursor {
    __device__ Cursor(const WgmmaParamsOf<kShape>& p, Barriers barriers) : queue(p, barriers) {}
    TileQueue<kShape> queue;
    int head = 0;
    int n = -1;  // the next tile of keys; -1: in the next tile of queries
  };

  __device__ void Refill(Cursor& at, const CUtensorMap* map, uint32_t to, uint32_t full,
                         uint32_t empty, uint32_t phase) {
    while (at.n < 0) {
      const int tile = at.queue.template Next<true>();
      if (tile < 0) return;
      const WgmmaWork<kShape> work = DecodeWork<kShape>(p_, tile);
      at.head = work.KvHead(p_);
      at.n = work.kv_tiles - 1;
    }
    ptx::MbarrierWait(empty, phase);
    ptx::MbarrierArriveExpectBytes(full, kSmem.kv_bytes);
    LoadTile<kShape>(to, map, full, kShape.tile_n, at.n * kShape.tile_n, at.head);
    --at.n;
  }

  const WgmmaParamsOf<kShape>& p_;
  const uint32_t smem_;  // base of the tiles
  const Barriers barriers_;
  Cursor keys_;
  Cursor values_;
};

// Where there is a producer.
struct WgmmaNoLoader {
  template <typename... T>
  __device__ explicit WgmmaNoLoader(const T&...) {}
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_INLINE_LOADER_CUH_
