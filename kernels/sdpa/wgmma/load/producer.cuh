// SPDX-License-Identifier: Apache-2.0
// The producer warpgroup: its first thread asks TMA for Q, K and V tiles,
// as far ahead of the consumers as the ring of K/V tiles lets it.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_PRODUCER_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_PRODUCER_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/wgmma/load/tile_load.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

template <WgmmaShape kShape>
class WgmmaProducer {
 public:
  using Barriers = WgmmaBarriers<kShape>;

  __device__ WgmmaProducer(const WgmmaParamsOf<kShape>& p, uint32_t smem, Barriers barriers)
      : p_(p), smem_(smem), barriers_(barriers) {}

  // One thread.
  __device__ void Run() {
    uint32_t q_phase = 0;
    TileQueue<kShape> queue(p_, barriers_);
    for (int tile; (tile = queue.template Next<true>()) >= 0;) {
      const WgmmaWork<kShape> work = queue.Work(tile);
      if constexpr (kShape.keep_k) {
        if (p_.tiles_at_once > 1) {
          LoadHead(HeadWalk<kShape>(p_, work), queue, q_phase);
          continue;
        }
      }
      if constexpr (kShape.split_kv) {
        if (!work.HasKeys()) break;
      }
      if ((kShape.causal || kShape.varlen) && work.kv_tiles == 0) {
        queue.FetchAhead();
        continue;
      }
      const int kv_head = work.KvHead(p_);
      const int first = kShape.split_kv ? work.split_begin : 0;
      // K first: its slot is free before Q's buffer is.
      LoadK(work, work.kv_tiles - 1, kv_head);
      q_phase ^= 1;
      LoadQ<kShape>(p_, smem_, barriers_, work, q_phase);
      for (int n = work.kv_tiles - 1; n >= first; --n) {
        if (n > first) {
          LoadK(work, n - 1, kv_head);
        } else {
          queue.FetchAhead();
        }
        LoadV(work, n, kv_head);
      }
    }
  }

 private:
  static constexpr WgmmaSmem kSmem = MakeSmem(kShape);

  // K of a head once, as its last tile of queries needs it, and V unless each tile does; Q of all
  // its tiles, from the last to the first.
  __device__ void LoadHead(HeadWalk<kShape> walk, TileQueue<kShape>& queue, uint32_t& q_phase) {
    const int kv_head = walk.work().KvHead(p_);
    if (walk.work().kv_tiles > 0) LoadK(walk.work(), walk.work().kv_tiles - 1, kv_head);
    for (bool is_last = true; !walk.IsDone(); walk.Advance(), is_last = false) {
      const WgmmaWork<kShape>& work = walk.work();
      if (walk.IsAtFirst()) queue.FetchAhead();
      if (work.kv_tiles == 0) continue;
      q_phase ^= 1;
      LoadQ<kShape>(p_, smem_, barriers_, work, q_phase);
      for (int n = work.kv_tiles - 1; n >= 0; --n) {
        if (is_last && n > 0) LoadK(work, n - 1, kv_head);
        if (is_last || !kShape.keep_v) LoadV(work, n, kv_head);
      }
    }
  }

  // This CTA's share of a K or V tile, to all CTAs of the cluster: rows that lie side by
  // side in each block, whole swizzle atoms. A peer's share may arrive before this CTA has
  // announced the tile's bytes: the phase can't end without that arrival, and the peer
  // waited for this CTA's consumers to have left the phase before.
  __device__ static void LoadShare(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                   int first_row, int head) {
    if constexpr (kShape.cluster == 1) {
      LoadTile<kShape>(to, map, barrier, kShape.tile_n, first_row, head);
    } else {
      constexpr int kColumns = SwizzleColumns(kShape);
      constexpr int kShare = kShape.tile_n / kShape.cluster;
      static_assert(kShape.tile_n % kShape.cluster == 0 && kShare % 8 == 0);
      const int share = blockIdx.x % kShape.cluster * kShare;
#pragma unroll
      for (int block = 0; block < kShape.head_dim / kColumns; ++block) {
        ptx::TmaLoad3dMulticast(to + (block * kShape.tile_n + share) * RowBytes(kShape), map,
                                barrier, block * kColumns, first_row + share, head,
                                (1 << kShape.cluster) - 1);
      }
    }
  }
  __device__ void LoadK(const WgmmaWork<kShape>& work, int n, int kv_head) {
    ptx::MbarrierWait(barriers_.KEmpty(k_.slot), k_.phase ^ 1);
    ptx::MbarrierArriveExpectBytes(barriers_.KFull(k_.slot), kSmem.kv_bytes);
    LoadShare(smem_ + kSmem.k + k_.slot * kSmem.kv_bytes, &p_.k, barriers_.KFull(k_.slot),
              work.FirstKey() + n * kShape.tile_n, kv_head);
    k_.Advance();
  }
  __device__ void LoadV(const WgmmaWork<kShape>& work, int n, int kv_head) {
    const uint32_t full = kShape.fp8 ? barriers_.RawFull(v_.slot) : barriers_.VFull(v_.slot);
    const uint32_t empty = kShape.fp8 ? barriers_.RawEmpty(v_.slot) : barriers_.VEmpty(v_.slot);
    ptx::MbarrierWait(empty, v_.phase ^ 1);
    ptx::MbarrierArriveExpectBytes(full, kSmem.kv_bytes);
    LoadShare(smem_ + (kShape.fp8 ? kSmem.raw : kSmem.v) + v_.slot * kSmem.kv_bytes, &p_.v, full,
              work.FirstKey() + n * kShape.tile_n, kv_head);
    v_.Advance();
  }

  const WgmmaParamsOf<kShape>& p_;
  const uint32_t smem_;  // base of the tiles
  const Barriers barriers_;
  RingCursor<KStages(kShape)> k_;
  RingCursor<kShape.stages> v_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_PRODUCER_CUH_
