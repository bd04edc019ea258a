// SPDX-License-Identifier: Apache-2.0
// Q, K and V on their way to shared memory, in the four ways of the mma family:
// through registers, by a ring of cp.async that the computing warps fill, by warps that
// do nothing else, and by a ring that TMA fills.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PIPELINE_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_PIPELINE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/common/ptx.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/mma/barriers.cuh"
#include "kernels/sdpa/mma/instructions.cuh"
#include "kernels/sdpa/mma/projection/fused_projection.cuh"
#include "kernels/sdpa/mma/schedule.cuh"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// Copies rows of kColumns two-byte units by the caller's `kThreads` threads, 16 bytes each.
//   stride: units from one row to the next
//   row_of(r): global row of row r, for r < valid_rows; rows from there on are zeros
template <MmaLayout kLayout, int kColumns, int kRows, int kThreads, bool kAsync, typename RowOf>
__device__ void CopyRows(uint32_t tile, const half* src, int64_t stride, int thread, int valid_rows,
                         RowOf row_of) {
  constexpr int kChunks = kColumns / 8;
  static_assert(kThreads % kChunks == 0, "a thread keeps to its column");
  constexpr int kRowStep = kThreads / kChunks;
  const int chunk = thread % kChunks;
  // Loads through registers: four in flight, or they take the place of fragments.
  constexpr int kUnroll = kAsync ? kRows / kRowStep + 1 : 4;
#pragma unroll kUnroll
  for (int first = 0; first < kRows; first += kRowStep) {
    const int row = first + thread / kChunks;
    if (kRows % kRowStep != 0 && row >= kRows) break;
    const bool valid = row < valid_rows;
    const uint32_t to = tile + ChunkOffset(kLayout, kColumns, row, chunk);
    // The address of a row that is not read must still be one inside the tensor.
    const half* from = src + (valid ? row_of(row) : row_of(0)) * stride + chunk * 8;
    if constexpr (kAsync) {
      ptx::CpAsync16(to, from, valid);
    } else {
      uint4 x = make_uint4(0, 0, 0, 0);
      if (valid) x = __ldg(reinterpret_cast<const uint4*>(from));
      ptx::StoreShared128(to, x);
    }
  }
}

// One tile of K, or of V.
template <MmaShape kShape, int kThreads, bool kAsync, bool kIsV>
__device__ void CopyKvTile(uint32_t tile, const half* src, const MmaParams& p, int thread, int n) {
  const int first_key = n * kShape.tile_n;
  CopyRows<kShape.layout, KvColumns(kShape), kShape.tile_n, kThreads, kAsync>(
      tile, src, kIsV ? VStride<kShape>(p) : KStride<kShape>(p), thread,
      p.forward.seq_kv - first_key, [&](int row) { return static_cast<int64_t>(first_key + row); });
}

// Q's tile, by the caller's kThreads threads.
template <MmaShape kShape, int kThreads, bool kAsync>
__device__ void CopyQTile(uint32_t tile, const MmaParams& p, const MmaWork<kShape>& work,
                          int thread) {
  if constexpr (ReadsPacked(kShape)) {
    CopyRows<kShape.layout, kShape.head_dim, TileM(kShape), kThreads, kAsync>(
        tile, work.q, KStride<kShape>(p), thread, work.rows,
        [&](int row) { return int64_t{work.first_row + row}; });
  } else if constexpr (kShape.strided) {
    CopyRows<kShape.layout, kShape.head_dim, TileM(kShape), kThreads, kAsync>(
        tile, work.q, 1, thread, work.rows,
        [&](int row) { return work.Elements(p, Strided(p).q, row); });
  } else {
    CopyRows<kShape.layout, kShape.head_dim, TileM(kShape), kThreads, kAsync>(
        tile, static_cast<const half*>(p.forward.q), kShape.head_dim, thread, work.rows,
        [&](int row) { return work.GlobalRow(p, row); });
  }
}

// The K/V tiles of one group of warps, last first: tile(i) = end - 1 - group - i * groups.
template <MmaShape kShape>
struct GroupTiles {
  int first;  // tile 0 of the group
  int count;

  __device__ GroupTiles(const MmaWork<kShape>& work, int group) {
    const int tiles = work.tile_end - work.tile_begin;
    first = work.tile_end - 1 - group;
    count = max(tiles - group + kShape.key_groups - 1, 0) / kShape.key_groups;
  }
  __device__ int operator[](int i) const { return first - i * kShape.key_groups; }
};

// Hands K and V tiles to a group of computing warps. All threads of a group call,
// in this order: Start, WaitFirst, and for each of the group's tiles AcquireK,
// AcquireV, Release. Every group calls the first two, also without tiles: they hold
// a barrier of the CTA.
template <MmaShape kShape>
class MmaPipeline {
 public:
  __device__ MmaPipeline(uint32_t smem, const MmaParams& p, const MmaWork<kShape>& work, int group,
                         int thread)
      : smem_(smem), p_(p), work_(work), tiles_(work, group), group_(group), thread_(thread) {}

  __device__ const GroupTiles<kShape>& tiles() const { return tiles_; }
  __device__ uint32_t K(int slot) const { return smem_ + kSmem.k + Tile(slot) * kSmem.kv_bytes; }
  __device__ uint32_t V(int slot) const { return smem_ + kSmem.v + Tile(slot) * kSmem.kv_bytes; }

  // Starts the copies of Q and of the first tiles.
  __device__ void Start() const {
    if constexpr (kShape.input == MmaInput::kRecomputed) {
      projection_.Start(p_, work_);
      return;
    }
    if constexpr (kShape.bulk_copy) {
#pragma unroll
      for (int i = 0; i < kShape.stages; ++i) FetchRows(i, i);
    }
    CopyQTile<kShape, ConsumerThreads(kShape), (kShape.stages > 0)>(
        smem_ + kSmem.q, p_, work_, group_ * kGroupThreads + thread_);
    if constexpr (kRing) {
#pragma unroll
      for (int i = 0; i < kShape.stages - 1; ++i) Fetch(i, i);
    }
  }

  // Where a tile's scores are computed one iteration before its output, K runs one
  // tile ahead of V: StartAhead, WaitFirstAhead, and AcquireAhead for each tile i,
  // after which V of tile i and K of tile i + 1 are readable.
  __device__ void StartAhead() const {
    CopyQTile<kShape, ConsumerThreads(kShape), true>(smem_ + kSmem.q, p_, work_,
                                                     group_ * kGroupThreads + thread_);
    FetchK(0, 0);
    ptx::CpAsyncCommit();
#pragma unroll
    for (int i = 1; i < kShape.stages; ++i) {
      FetchK(i, i);
      FetchV(i - 1, i - 1);
      ptx::CpAsyncCommit();
    }
  }
  __device__ void WaitFirstAhead() const {
    ptx::CpAsyncWait<kShape.stages - 1>();
    __syncthreads();
  }
  __device__ void AcquireAhead(int i) const {
    ptx::CpAsyncWait<kShape.stages - 2>();
    SyncGroup();
    // K of tile i and V of tile i - 1 have been read by all.
    FetchK(i + kShape.stages, i % kShape.stages);
    FetchV(i + kShape.stages - 1, (i + kShape.stages - 1) % kShape.stages);
    ptx::CpAsyncCommit();
  }

  // Q is readable, and the first K tile where there is one.
  __device__ void WaitFirst() const {
    if constexpr (kShape.producer_warps > 0) {
      ptx::CpAsyncCommit();
      ptx::CpAsyncWait<0>();
      ptx::NamedBarrierSync(kConsumerBarrier, ConsumerThreads(kShape));
    } else {
      if constexpr (kRing) ptx::CpAsyncWait<2 * kShape.stages - 3>();
      if constexpr (kShape.bulk_copy) {
        ptx::CpAsyncCommit();
        ptx::CpAsyncWait<0>();
      }
      __syncthreads();
    }
  }

  // Tile i's K is readable; returns its slot.
  __device__ int AcquireK(int i) const {
    if constexpr (kShape.producer_warps > 0) {
      const int slot = i % kShape.stages;
      WaitAtBarrier(Barriers().KFull(slot), i / kShape.stages & 1);
      return slot;
    } else if constexpr (kShape.bulk_copy) {
      const int slot = i % kShape.stages;
      ptx::MbarrierWait(BulkFull(0, slot), i / kShape.stages & 1);
      return slot;
    } else if constexpr (kRing) {
      if (i > 0) {
        ptx::CpAsyncWait<2 * kShape.stages - 4>();
        SyncGroup();
      }
      // Overwrites the slot of tile i - 1, which the barrier has just freed.
      Fetch(i + kShape.stages - 1, (i + kShape.stages - 1) % kShape.stages);
      return i % kShape.stages;
    } else if constexpr (kShape.input == MmaInput::kRecomputed) {
      if (i > 0) SyncGroup();
      projection_.MakeKv(p_, work_, tiles_[i], K(0), V(0));
      SyncGroup();
      return 0;
    } else {
      if (i > 0) SyncGroup();
      const int n = tiles_[i];
      CopyKvTile<kShape, kGroupThreads, false, false>(K(0), work_.k, p_, thread_, n);
      CopyKvTile<kShape, kGroupThreads, false, true>(V(0), work_.v, p_, thread_, n);
      SyncGroup();
      return 0;
    }
  }

  // Its V too. The first tile's comes apart from its K; later ones came with it.
  __device__ void AcquireV(int i) const {
    if constexpr (kShape.producer_warps > 0) {
      WaitAtBarrier(Barriers().VFull(i % kShape.stages), i / kShape.stages & 1);
    } else if constexpr (kShape.bulk_copy) {
      ptx::MbarrierWait(BulkFull(1, i % kShape.stages), i / kShape.stages & 1);
    } else if constexpr (kRing) {
      if (i == 0) {
        ptx::CpAsyncWait<2 * kShape.stages - 2>();
        SyncGroup();
      }
    }
  }

  // The calling thread has read tile i. One arrival per warp behind a __syncwarp would do,
  // but compute-sanitizer's racecheck can't follow it.
  __device__ void Release(int i) const {
    if constexpr (kShape.producer_warps > 0) {
      ArriveAtBarrier(Barriers().Empty(i % kShape.stages));
    } else if constexpr (kShape.bulk_copy) {
      SyncGroup();
      FetchRows(i + kShape.stages, i % kShape.stages);
    }
  }

  // After the last tile: a group that had one tile less than the first passes the barriers
  // that it missed. Nothing needs them but racecheck, which loses count where the warps of a
  // CTA pass different numbers of barriers, and then names accesses that the CTA's orders.
  __device__ void PassMissedBarriers() const {
    if constexpr (kShape.key_groups > 1 && kShape.row_warps > 1) {
      if (tiles_.count == GroupTiles<kShape>(work_, 0).count) return;
      SyncGroup();
      if (!kRing && !kShape.bulk_copy && tiles_.count > 0) SyncGroup();
    }
  }

  // The producers' whole work; `thread` among theirs.
  __device__ void Produce(int thread) const {
    constexpr int kThreads = kShape.producer_warps > 0 ? kShape.producer_warps * 32 : 32;
    for (int i = 0; i < tiles_.count; ++i) {
      const int slot = i % kShape.stages;
      if (i >= kShape.stages) {
        WaitAtBarrier(Barriers().Empty(slot), (i / kShape.stages - 1) & 1);
      }
      CopyKvTile<kShape, kThreads, true, false>(K(slot), work_.k, p_, thread, tiles_[i]);
      ArriveOnCopies(Barriers().KFull(slot));
      CopyKvTile<kShape, kThreads, true, true>(V(slot), work_.v, p_, thread, tiles_[i]);
      ArriveOnCopies(Barriers().VFull(slot));
    }
    // No thread may leave with copies under way.
    ptx::CpAsyncCommit();
    ptx::CpAsyncWait<0>();
  }

  // One thread, before a barrier of the CTA.
  __device__ static void InitBarriers(uint32_t smem) {
    if constexpr (kShape.bulk_copy) {
      for (int i = 0; i < kShape.key_groups * 2 * kShape.stages; ++i) {
        ptx::MbarrierInit(smem + kSmem.barriers + i * 8, 1);
      }
      ptx::MbarrierInitFence();
    } else {
      ProducerBarriers{smem + kSmem.barriers, Stages(kShape)}.Init(kShape.producer_warps * 32,
                                                                   ConsumerThreads(kShape));
    }
  }

 private:
  static constexpr MmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kGroupThreads = kShape.row_warps * 32;
  static constexpr bool kRing =
      kShape.stages > 0 && kShape.producer_warps == 0 && !kShape.bulk_copy;

  __device__ int Tile(int slot) const { return group_ * Stages(kShape) + slot; }
  __device__ ProducerBarriers Barriers() const { return {smem_ + kSmem.barriers, Stages(kShape)}; }

  __device__ void SyncGroup() const {
    if constexpr (kShape.key_groups == 1) {
      __syncthreads();
    } else if constexpr (kShape.row_warps == 1) {
      __syncwarp();
    } else {
      ptx::NamedBarrierSync(kGroupBarrier + group_, kGroupThreads);
    }
  }

  // Starts the copies of the group's tile i, K and V in a commit group each. Past
  // the last tile the groups are empty: their count, which all waits go by, stays
  // right.
  __device__ void Fetch(int i, int slot) const {
    FetchK(i, slot);
    ptx::CpAsyncCommit();
    FetchV(i, slot);
    ptx::CpAsyncCommit();
  }
  __device__ void FetchK(int i, int slot) const {
    if (i >= tiles_.count) return;
    CopyKvTile<kShape, kGroupThreads, true, false>(K(slot), work_.k, p_, thread_, tiles_[i]);
  }
  __device__ void FetchV(int i, int slot) const {
    if (i >= tiles_.count) return;
    CopyKvTile<kShape, kGroupThreads, true, true>(V(slot), work_.v, p_, thread_, tiles_[i]);
  }

  // Completed when K (part 0) or V (1) of a slot of the group is there.
  __device__ uint32_t BulkFull(int part, int slot) const {
    return smem_ + kSmem.barriers + ((group_ * 2 + part) * kShape.stages + slot) * 8;
  }
  // Asks TMA for the group's tile i, a row by each thread. Past the last key the
  // last one comes again: its probability is 0 there, and what lies in memory may be NaN.
  __device__ void FetchRows(int i, int slot) const {
    if (i >= tiles_.count) return;
    FetchRows(K(slot), BulkFull(0, slot), work_.k, tiles_[i]);
    FetchRows(V(slot), BulkFull(1, slot), work_.v, tiles_[i]);
  }
  __device__ void FetchRows(uint32_t tile, uint32_t full, const half* src, int n) const {
    constexpr int kBytes = KvColumns(kShape) * 2;
    if (thread_ == 0) ptx::MbarrierArriveExpectBytes(full, kShape.tile_n * kBytes);
#pragma unroll
    for (int row = thread_; row < kShape.tile_n; row += kGroupThreads) {
      const int key = min(n * kShape.tile_n + row, p_.forward.seq_kv - 1);
      ptx::BulkLoad(tile + ChunkOffset(kShape.layout, KvColumns(kShape), row, 0),
                    src + key * KStride<kShape>(p_), kBytes, full);
    }
  }

  const uint32_t smem_;
  const RecomputedTiles<kShape> projection_{smem_};
  const MmaParams& p_;
  const MmaWork<kShape>& work_;
  const GroupTiles<kShape> tiles_;
  const int group_;
  const int thread_;  // in its group
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PIPELINE_CUH_
