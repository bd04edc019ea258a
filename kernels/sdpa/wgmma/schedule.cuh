// SPDX-License-Identifier: Apache-2.0
// Which tiles of the problem a CTA of the wgmma family works on.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_

#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/shared/scores.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// One tile_m block of queries of one head. The CTAs of a cluster have neighbouring blocks
// and walk over the same K/V tiles, as many as the last of them needs: for the others the
// first may be masked as a whole, and a block may lie past the last row.
//
// With packed heads a block holds `positions` of the sequence of all query heads that share a
// K/V head: row r is of position r / group_size and of the head r % group_size of the group.
// With split keys a CTA has those tiles of them from split_begin on.
template <WgmmaShape kShape>
struct WgmmaWork {
  using Params = WgmmaParamsOf<kShape>;

  int head;         // over batch and query heads, or K/V heads where packed
  int first_row;    // of Q: a position
  int kv_tiles;     // tiles that hold a key which some row sees, up to the CTA's last
  int split_begin;  // with split keys, the CTA's first of them

  // Position `row` of Q sees keys [0, VisibleKeys); the causal mask is aligned to the
  // bottom right.
  __device__ static int VisibleKeys(const Params& p, int row) {
    return kShape.causal ? CausalKeys(p, row) : p.seq_kv;
  }

  // With split keys there may be fewer tiles than CTAs to share them.
  __device__ bool HasKeys() const { return split_begin < kv_tiles; }

  __device__ int KvHead(const Params& p) const {
    return kShape.pack_heads ? head : head / p.group_size;
  }

  // What stands for row `in_block` + `step` of the block in the functions below: its position
  // where nothing is packed, so that their arithmetic is what it would be without them.
  __device__ int Row(int in_block, int step = 0) const {
    if constexpr (kShape.pack_heads) return in_block + step;
    return first_row + in_block + step;
  }
  // Where heads are packed.
  __device__ int PackedPosition(const Params& p, int row) const {
    return first_row + row / p.group_size;
  }
  // Whether it lies in Q, and where there, in O and in LSE.
  __device__ bool IsValid(const Params& p, int row) const {
    if constexpr (kShape.pack_heads) {
      return row / p.group_size < min(p.positions, p.seq_q - first_row);
    } else {
      return row < p.seq_q;
    }
  }
  __device__ int64_t IndexOf(const Params& p, int row) const {
    if constexpr (kShape.pack_heads) {
      const int position = row / p.group_size;
      const int query_head = head * p.group_size + row - position * p.group_size;
      return int64_t{query_head} * p.seq_q + first_row + position;
    } else {
      return int64_t{head} * p.seq_q + row;
    }
  }
  // The rows of the block that lie in Q are its first ones.
  __device__ int Rows(const Params& p) const {
    if constexpr (kShape.pack_heads) {
      return min(p.positions, p.seq_q - first_row) * p.group_size;
    } else {
      return min(TileM(kShape), p.seq_q - first_row);
    }
  }
};

// A number of the queue stands for a block per CTA of a cluster.
template <WgmmaShape kShape>
__device__ int BlocksPerHead(const WgmmaParams& p) {
  return (p.query_tiles + kShape.cluster - 1) / kShape.cluster;
}

// Tiles are numbered so that `heads_in_flight` heads, whose K/V fit into L2
// together, go before the next ones; among them, under the causal mask, the longest
// first. WgmmaTileOrder names the other orders.
template <WgmmaShape kShape>
__device__ WgmmaWork<kShape> DecodeWork(const WgmmaParamsOf<kShape>& p, int tile) {
  WgmmaWork<kShape> w;
  const int blocks = BlocksPerHead<kShape>(p);
  constexpr bool kBackwards = kShape.tile_order == WgmmaTileOrder::kShortestFirst;
  int block;
  if constexpr (kShape.tile_order == WgmmaTileOrder::kHeadsAbreast) {
    const int rank = tile / p.heads;
    block = kShape.causal ? blocks - 1 - rank : rank;
    w.head = tile - rank * p.heads;
  } else if constexpr (kShape.causal) {
    const int tiles_per_group = p.heads_in_flight * blocks;
    const int group = tile / tiles_per_group;
    const int in_group = tile - group * tiles_per_group;
    const int first_head = group * p.heads_in_flight;
    const int heads = min(p.heads_in_flight, p.heads - first_head);
    const int rank = in_group / heads;
    block = kBackwards ? rank : blocks - 1 - rank;
    w.head = first_head + in_group - rank * heads;
  } else {
    w.head = tile / blocks;
    const int rank = tile - w.head * blocks;
    block = kBackwards ? blocks - 1 - rank : rank;
  }
  int last_row;
  if constexpr (kShape.pack_heads) {
    w.first_row = block * p.positions;
    last_row = min((block + 1) * p.positions, p.seq_q) - 1;
  } else {
    constexpr int kClusterRows = kShape.cluster * TileM(kShape);
    w.first_row = block * kClusterRows + blockIdx.x % kShape.cluster * TileM(kShape);
    last_row = min((block + 1) * kClusterRows, p.seq_q) - 1;
  }
  const int keys = max(w.VisibleKeys(p, last_row), 0);
  w.kv_tiles = (keys + kShape.tile_n - 1) / kShape.tile_n;
  if constexpr (kShape.split_kv) {
    const int split = static_cast<int>(blockIdx.x) % p.splits;
    const int tiles = w.kv_tiles;
    w.split_begin = split * tiles / p.splits;
    w.kv_tiles = (split + 1) * tiles / p.splits;
  }
  return w;
}

// The tiles that a persistent CTA works on, one after another, as its producer
// sees them; the consumers follow through the barriers' work slots or by the same
// arithmetic.
//   one per CTA: the GPU hands them out, in their order, as CTAs end; with split keys
//            neighbouring CTAs have the same
//   static:  one tile a round; under the causal mask every other round runs
//            backwards, for tiles are sorted by length and the first CTA would get
//            the longest of each
//   dynamic: the first by CTA, the others from a counter, which the last fetch of
//            the launch sets back. Each CTA fetches until its first number past the
//            end, so a launch fetches as often as it has tiles
template <WgmmaShape kShape>
class TileQueue {
 public:
  __device__ TileQueue(const WgmmaParamsOf<kShape>& p, WgmmaBarriers<kShape> barriers)
      : p_(p), barriers_(barriers), tiles_(BlocksPerHead<kShape>(p) * p.heads) {}

  // The producer, once between two calls of Next: asks for the next tile. The answer is
  // not waited for here, so that a round trip to L2 passes beside the wait for a slot of
  // the ring; not earlier, for a tile that is asked for is no other CTA's any more.
  __device__ void FetchAhead() {
    if constexpr (kShape.fetch_ahead) fetched_ = atomicAdd(p_.next_tile, 1);
  }

  // Both sides: the next tile, or -1 when there is none. The producer calls it from
  // one thread; the consumers, and FP8's transposing warps, from whole warps.
  template <bool kProducer>
  __device__ int Next() {
    if constexpr (kShape.split_kv) {
      return round_++ == 0 ? static_cast<int>(blockIdx.x) / p_.splits : -1;
    } else if constexpr (kShape.tile_per_cta) {
      return round_++ == 0 ? static_cast<int>(blockIdx.x) : -1;
    } else if constexpr (!kShape.dynamic_schedule) {
      const int clusters = gridDim.x / kShape.cluster;
      const int cluster = blockIdx.x / kShape.cluster;
      while (round_ * clusters < tiles_) {
        const int place = kShape.causal && round_ % 2 == 1 ? clusters - 1 - cluster : cluster;
        const int tile = round_++ * clusters + place;
        if (tile < tiles_) return tile;
      }
      return -1;
    } else if constexpr (kProducer) {
      int tile = blockIdx.x;
      if (round_++ > 0) {
        const int fetched = kShape.fetch_ahead ? fetched_ : atomicAdd(p_.next_tile, 1);
        if (fetched == tiles_ - 1) *p_.next_tile = 0;
        tile = fetched + gridDim.x;
      }
      if (tile >= tiles_) tile = -1;
      ptx::MbarrierWait(barriers_.WorkEmpty(slot_.slot), slot_.phase ^ 1);
      ptx::StoreShared(barriers_.WorkTile(slot_.slot), tile);
      ptx::MbarrierArrive(barriers_.WorkFull(slot_.slot));
      slot_.Advance();
      return tile;
    } else {
      ptx::MbarrierWait(barriers_.WorkFull(slot_.slot), slot_.phase);
      // A lane that came out of the wait late, behind the arrival below, could find the
      // barrier two phases on.
      __syncwarp();
      // The lane that gives the slot back is the one that reads it: racecheck follows no
      // arrival of one lane for the reads of 32 (reports/decisions/0022, 0024).
      int tile = 0;
      if (threadIdx.x % 32 == 0) {
        tile = ptx::LoadShared(barriers_.WorkTile(slot_.slot));
        ptx::MbarrierArrive(barriers_.WorkEmpty(slot_.slot));
      }
      slot_.Advance();
      // The same in all lanes, which the compiler must be told too: else all that follows
      // from it, down to the descriptors of products, is kept per lane and moved to
      // uniform registers one by one.
      return __shfl_sync(0xffffffffu, tile, 0);
    }
  }

 private:
  const WgmmaParamsOf<kShape>& p_;
  const WgmmaBarriers<kShape> barriers_;
  const int tiles_;
  int round_ = 0;
  int fetched_ = 0;  // with fetch_ahead: what the counter said
  RingCursor<kWorkSlots> slot_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_
