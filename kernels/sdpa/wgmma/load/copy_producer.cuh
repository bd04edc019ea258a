// SPDX-License-Identifier: Apache-2.0
// The producer warpgroup without TMA: its threads copy K and V tiles by
// cp.async, 16 bytes at a time, into the places where the swizzle has them.
//
// The products read shared memory through another proxy, so that a copy counts only after
// its thread has waited for it and fenced (PTX ISA, "Async proxy"). That is done one tile
// behind, so that two tiles are under way. Tile i - 1 is handed over before tile i + 1's slot
// is waited for, which with two slots or more never waits for a tile that was not.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_COPY_PRODUCER_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_COPY_PRODUCER_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/ptx.cuh"
#include "kernels/sdpa/wgmma/load/tile_load.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/swizzle.h"

namespace warpledger::sdpa {

template <WgmmaShape kShape>
class WgmmaCopyProducer {
 public:
  using Barriers = WgmmaBarriers<kShape>;

  __device__ WgmmaCopyProducer(const WgmmaCopyParams& p, uint32_t smem, Barriers barriers)
      : p_(p), smem_(smem), barriers_(barriers) {}

  // All threads of the warpgroup. Q, read once for many tiles of keys, comes by TMA.
  __device__ void Run() {
    uint32_t q_phase = 0;
    TileQueue<kShape> queue(p_, barriers_);
    for (int tile; (tile = queue.template Next<true>()) >= 0;) {
      const WgmmaWork<kShape> work = DecodeWork<kShape>(p_, tile);
      if (kShape.causal && work.kv_tiles == 0) continue;
      const int kv_head = work.KvHead(p_);
      CopyK(work.kv_tiles - 1, kv_head);
      q_phase ^= 1;
      if (threadIdx.x == 0) LoadQ<kShape>(p_, smem_, barriers_, work, q_phase);
      for (int n = work.kv_tiles - 1; n >= 0; --n) {
        if (n > 0) CopyK(n - 1, kv_head);
        CopyV(n, kv_head);
      }
    }
    HandOver<0>();
  }

 private:
  static constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kChunks = kShape.head_dim / 8;  // of 16 bytes, in a row
  static constexpr int kBlockChunks = kSwizzleBytes / 16;
  static constexpr int kRowsAtOnce = kWarpgroup / kChunks;
  static_assert(kShape.stages > 1 && !kShape.dynamic_schedule && kShape.cluster == 1 &&
                !kShape.split_kv);
  static_assert(kShape.tile_n % kRowsAtOnce == 0 && 2 * kRowsAtOnce % 8 == 0);

  // The tile whose copies are the oldest under way, to the consumers.
  template <int kNewer>
  __device__ void HandOver() {
    if (pending_ == 0) return;
    ptx::CpAsyncWait<kNewer>();
    ptx::FenceProxyAsync();
    ptx::MbarrierArrive(pending_);
    pending_ = 0;
  }

  // A thread keeps its column of chunks and goes down the rows. A whole tile, as all but the
  // last are, takes one instruction a copy: two steps down, which are whole swizzle atoms, are
  // the same distance everywhere. Rows past the last key become zeros, as TMA
  // makes them.
  __device__ void Copy(uint32_t to, const void* rows, int n, int kv_head, uint32_t full) {
    const int chunk = threadIdx.x % kChunks;
    const int first = threadIdx.x / kChunks;
    const char* source =
        static_cast<const char*>(rows) +
        ((int64_t{kv_head} * p_.seq_kv + n * kShape.tile_n + first) * kChunks + chunk) * 16;
    const uint32_t block = to + chunk / kBlockChunks * kShape.tile_n * kSwizzleBytes;
    const int keys = p_.seq_kv - n * kShape.tile_n;
    constexpr int kStepBytes = kRowsAtOnce * kChunks * 16;
    if (keys >= kShape.tile_n) {
      const uint32_t even = block + SwizzledChunk(first, chunk % kBlockChunks);
      const uint32_t odd = block + SwizzledChunk(first + kRowsAtOnce, chunk % kBlockChunks);
#pragma unroll
      for (int i = 0; i < kShape.tile_n / kRowsAtOnce; ++i) {
        const uint32_t at = (i % 2 == 0 ? even : odd) + i / 2 * 2 * kRowsAtOnce * kSwizzleBytes;
        ptx::CpAsync16(at, source + i * kStepBytes, true);
      }
    } else {
#pragma unroll 1
      for (int row = first; row < kShape.tile_n; row += kRowsAtOnce) {
        ptx::CpAsync16(block + SwizzledChunk(row, chunk % kBlockChunks), source, row < keys);
        source += kStepBytes;
      }
    }
    ptx::CpAsyncCommit();
    HandOver<1>();
    pending_ = full;
  }
  __device__ void CopyK(int n, int kv_head) {
    ptx::MbarrierWait(barriers_.KEmpty(k_.slot), k_.phase ^ 1);
    Copy(smem_ + kSmem.k + k_.slot * kSmem.kv_bytes, p_.k_rows, n, kv_head,
         barriers_.KFull(k_.slot));
    k_.Advance();
  }
  __device__ void CopyV(int n, int kv_head) {
    ptx::MbarrierWait(barriers_.VEmpty(v_.slot), v_.phase ^ 1);
    Copy(smem_ + kSmem.v + v_.slot * kSmem.kv_bytes, p_.v_rows, n, kv_head,
         barriers_.VFull(v_.slot));
    v_.Advance();
  }

  const WgmmaCopyParams& p_;
  const uint32_t smem_;  // base of the tiles
  const Barriers barriers_;
  uint32_t pending_ = 0;  // the barrier of the tile under way; 0: none, for tiles lie before it
  RingCursor<kShape.stages> k_;
  RingCursor<kShape.stages> v_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_LOAD_COPY_PRODUCER_CUH_
