// SPDX-License-Identifier: Apache-2.0
// Which tiles of the problem a CTA of the wgmma family works on.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/shared/scores.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// The sequence that a block is of. With one length for all it is what the launch's parameters say,
// and begins at row 0.
template <WgmmaShape kShape, bool kVarlen = kShape.varlen>
struct WgmmaSequence {
  // What has its seq_q and seq_kv.
  __device__ static const WgmmaParamsOf<kShape>& Lengths(const WgmmaParamsOf<kShape>& p) {
    return p;
  }
  __device__ static int FirstQuery() { return 0; }
  __device__ static int FirstKey() { return 0; }
};
template <WgmmaShape kShape>
struct WgmmaSequence<kShape, true> {
  int first_q;   // its first row of Q,
  int first_kv;  // of K and V: the producer's alone
  int first_o;   // and of O
  int seq_q;
  int seq_kv;
  int64_t first_lse;  // of head 0
  uint32_t slot;      // the consumers': where all of this stands while they work on it

  __device__ const WgmmaSequence& Lengths(const WgmmaParamsOf<kShape>&) const { return *this; }
  __device__ int FirstQuery() const { return first_q; }
  __device__ int FirstKey() const { return first_kv; }
};

// One tile_m block of queries of one head. The CTAs of a cluster have neighbouring blocks
// and walk over the same K/V tiles, as many as the last of them needs: for the others the
// first may be masked as a whole, and a block may lie past the last row.
//
// With packed heads a block holds `positions` of the sequence of all query heads that share a
// K/V head: row r is of position r / group_size and of the head r % group_size of the group.
// With split keys a CTA has those tiles of them from split_begin on.
template <WgmmaShape kShape>
struct WgmmaWork : WgmmaSequence<kShape> {
  using Params = WgmmaParamsOf<kShape>;

  int head;         // over batch and query heads, or K/V heads where packed
  int first_row;    // of Q: a position
  int kv_tiles;     // tiles that hold a key which some row sees, up to the CTA's last
  int split_begin;  // with split keys, the CTA's first of them

  // Position `row` of Q sees keys [0, VisibleKeys); the causal mask is aligned to the
  // bottom right.
  __device__ int VisibleKeys(const Params& p, int row) const {
    return kShape.causal ? CausalKeys(this->Lengths(p), row) : this->Lengths(p).seq_kv;
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
      return row < this->Lengths(p).seq_q;
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
  // Elements of O, and values of LSE, before a row's.
  __device__ int64_t OutputOf(const Params& p, int row) const {
    if constexpr (kShape.varlen) {
      return (int64_t{this->first_o} + row) * p.o_row_stride + head * p.o_head_stride;
    } else if constexpr (StridedOutput(kShape)) {
      const int batch = head / p.heads_of_batch;
      return batch * p.o_strides.batch + (head - batch * p.heads_of_batch) * p.o_strides.head +
             row * p.o_strides.row;
    } else {
      return IndexOf(p, row) * kShape.head_dim;
    }
  }
  __device__ int64_t LseOf(const Params& p, int row) const {
    if constexpr (kShape.varlen) {
      return this->first_lse + head * p.lse_head_stride + row;
    } else {
      return IndexOf(p, row);
    }
  }
  // The rows of the block that lie in Q are its first ones.
  __device__ int Rows(const Params& p) const {
    if constexpr (kShape.pack_heads) {
      return min(p.positions, p.seq_q - first_row) * p.group_size;
    } else {
      return min(TileM(kShape), this->Lengths(p).seq_q - first_row);
    }
  }
};

// What a work slot says of a tile of packed sequences, to the consumers.
template <WgmmaShape kShape>
struct PackedWork {
  // All but the rows where its queries and keys begin, which consumers don't ask for. In two steps,
  // between which nothing is loaded: of three consumers' kernels the producer has 32 registers.
  __device__ static void StorePlace(uint32_t slot, const WgmmaWork<kShape>& work) {
    const uint32_t place[4] = {
        static_cast<uint32_t>(work.head), static_cast<uint32_t>(work.first_row),
        static_cast<uint32_t>(work.kv_tiles), static_cast<uint32_t>(work.seq_q)};
    ptx::StoreShared(slot, place);
  }
  __device__ static void StoreSequence(uint32_t slot, const SequenceBlock& of) {
    const uint32_t rest[4] = {static_cast<uint32_t>(of.seq_kv), static_cast<uint32_t>(of.first_o),
                              static_cast<uint32_t>(of.first_lse),
                              static_cast<uint32_t>(of.first_lse >> 32)};
    ptx::StoreShared(slot + 16, rest);
  }
  // The same in all lanes. Only the first one reads, for it is the one that gives the slot back:
  // racecheck follows no arrival of one lane for the reads of 32 (reports/decisions/0022, 0024).
  __device__ static WgmmaWork<kShape> Read(uint32_t slot) {
    uint32_t place[4] = {};
    uint32_t rest[4] = {};
    if (threadIdx.x % 32 == 0) {
      ptx::LoadShared(slot, place);
      ptx::LoadShared(slot + 16, rest);
    }
    const auto word = [](uint32_t value) { return __shfl_sync(0xffffffffu, value, 0); };
    const auto number = [&](uint32_t value) { return static_cast<int>(word(value)); };
    WgmmaWork<kShape> work;
    work.head = number(place[0]);
    work.first_row = number(place[1]);
    work.kv_tiles = number(place[2]);
    work.seq_q = number(place[3]);
    work.seq_kv = number(rest[0]);
    work.first_o = number(rest[1]);
    const auto low = int64_t{word(rest[2])};
    work.first_lse = low | int64_t{number(rest[3])} << 32;
    work.slot = slot;
    return work;
  }
};

// A number of the queue stands for a block per CTA of a cluster, or for all of a head.
template <WgmmaShape kShape>
__device__ int BlocksPerHead(const WgmmaParamsOf<kShape>& p) {
  if constexpr (kShape.keep_k) return p.tiles_at_once > 1 ? 1 : p.query_tiles;
  return (p.query_tiles + kShape.cluster - 1) / kShape.cluster;
}

// Tiles are numbered so that `heads_in_flight` heads, whose K/V fit into L2
// together, go before the next ones; among them, under the causal mask, the longest
// first. WgmmaTileOrder names the other orders.
template <WgmmaShape kShape>
__device__ WgmmaWork<kShape> DecodeWork(const WgmmaParamsOf<kShape>& p, int tile) {
  WgmmaWork<kShape> w;
  int blocks;
  int heads_in_flight;
  if constexpr (kShape.varlen) {
    // Its other rows follow where the producer needs them: Publish.
    const SequenceBlock& of = p.blocks[tile / p.heads];
    tile -= of.first_block * p.heads;
    w.seq_q = of.seq_q;
    w.seq_kv = of.seq_kv;
    blocks = (of.seq_q + TileM(kShape) - 1) / TileM(kShape);
    heads_in_flight = of.heads_in_flight;
  } else {
    blocks = BlocksPerHead<kShape>(p);
    heads_in_flight = p.heads_in_flight;
  }
  constexpr bool kBackwards = kShape.tile_order == WgmmaTileOrder::kShortestFirst;
  int block;
  if constexpr (kShape.tile_order == WgmmaTileOrder::kHeadsAbreast) {
    const int rank = tile / p.heads;
    block = kShape.causal ? blocks - 1 - rank : rank;
    w.head = tile - rank * p.heads;
  } else if constexpr (kShape.causal) {
    const int tiles_per_group = heads_in_flight * blocks;
    const int group = tile / tiles_per_group;
    const int in_group = tile - group * tiles_per_group;
    const int first_head = group * heads_in_flight;
    const int heads = min(heads_in_flight, p.heads - first_head);
    const int rank = in_group / heads;
    block = kBackwards ? rank : blocks - 1 - rank;
    w.head = first_head + in_group - rank * heads;
  } else {
    w.head = tile / blocks;
    const int rank = tile - w.head * blocks;
    block = kBackwards ? blocks - 1 - rank : rank;
  }
  // The last of those that the CTA takes.
  if constexpr (kShape.keep_k) block = (block + 1) * p.tiles_at_once - 1;
  int last_row;
  if constexpr (kShape.pack_heads) {
    w.first_row = block * p.positions;
    last_row = min((block + 1) * p.positions, p.seq_q) - 1;
  } else {
    constexpr int kClusterRows = kShape.cluster * TileM(kShape);
    w.first_row = block * kClusterRows + blockIdx.x % kShape.cluster * TileM(kShape);
    last_row = min((block + 1) * kClusterRows, w.Lengths(p).seq_q) - 1;
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

// With keep_k: the tiles of queries that a CTA takes with one copy of K, from the head's last to
// its first. Tiles of keys are let go in the order in which they came: under the causal mask each
// tile of queries reads the first of those that the one before it read.
template <WgmmaShape kShape>
class HeadWalk {
 public:
  using Params = WgmmaParamsOf<kShape>;

  //   last: the tile that the queue handed out
  __device__ HeadWalk(const Params& p, const WgmmaWork<kShape>& last)
      : p_(p), work_(last), left_(p.tiles_at_once), kept_(TilesOfNext()) {}

  __device__ bool IsDone() const { return left_ == 0; }
  __device__ bool IsAtFirst() const { return left_ == 1; }
  __device__ const WgmmaWork<kShape>& work() const { return work_; }
  // Tiles of keys that the next tile of queries reads too: the first ones.
  __device__ int kept() const { return kept_; }
  __device__ void Advance() {
    --left_;
    work_.first_row -= TileM(kShape);
    work_.kv_tiles = kept_;
    kept_ = TilesOfNext();
  }

 private:
  __device__ int TilesOfNext() const {
    if (left_ <= 1) return 0;
    const int keys = max(work_.VisibleKeys(p_, work_.first_row - 1), 0);
    return (keys + kShape.tile_n - 1) / kShape.tile_n;
  }

  const Params& p_;
  WgmmaWork<kShape> work_;
  int left_;  // with this one
  int kept_;
};

// The work slot of the tile that a queue returned last, or is to return next, and with packed
// sequences the tile, which its number alone does not say.
template <WgmmaShape kShape>
struct PackedSlot : RingCursor<kWorkSlots> {
  WgmmaWork<kShape> work;
};

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
      : p_(p), barriers_(barriers), tiles_(Tiles(p)) {}

  // The producer, once between two calls of Next: asks for the next tile. The answer is
  // not waited for here, so that a round trip to L2 passes beside the wait for a slot of
  // the ring; not earlier, for a tile that is asked for is no other CTA's any more.
  __device__ void FetchAhead() {
    if constexpr (kShape.fetch_ahead) {
      if (AsksForCluster()) fetched_ = atomicAdd(p_.next_tile, 1);
    }
  }

  // Both sides: the next tile, or -1 when there is none; with varlen the consumers get its head.
  // The producer calls it from one thread; the consumers, and FP8's transposing warps, from whole
  // warps.
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
    } else if constexpr (kProducer && kShape.cluster > 1) {
      return NextOfCluster();
    } else if constexpr (kProducer) {
      const int tile = NextOfCounter();
      ptx::MbarrierWait(barriers_.WorkEmpty(slot_.slot), slot_.phase ^ 1);
      if constexpr (kShape.varlen) {
        Publish(tile, barriers_.WorkTile(slot_.slot));
      } else {
        ptx::StoreShared(barriers_.WorkTile(slot_.slot), tile);
      }
      ptx::MbarrierArrive(barriers_.WorkFull(slot_.slot));
      slot_.Advance();
      return tile;
    } else {
      if constexpr (kShape.varlen) {
        if (round_++ > 0) {
          __syncwarp();
          if (threadIdx.x % 32 == 0) ptx::MbarrierArrive(barriers_.WorkEmpty(slot_.Before().slot));
        }
      }
      if constexpr (kShape.cluster > 1) {
        ptx::MbarrierWaitForPeers(barriers_.WorkFull(slot_.slot), slot_.phase);
      } else {
        ptx::MbarrierWait(barriers_.WorkFull(slot_.slot), slot_.phase);
      }
      // A lane that came out of the wait late, behind the arrival below, could find the
      // barrier two phases on.
      __syncwarp();
      if constexpr (kShape.varlen) {
        slot_.work = PackedWork<kShape>::Read(barriers_.WorkTile(slot_.slot));
        slot_.Advance();
        return slot_.work.head;
      }
      // The lane that gives the slot back is the one that reads it: racecheck follows no
      // arrival of one lane for the reads of 32 (reports/decisions/0022, 0024).
      int tile = 0;
      if (threadIdx.x % 32 == 0) {
        tile = ptx::LoadShared(barriers_.WorkTile(slot_.slot));
        GiveBack(tile);
      }
      slot_.Advance();
      // The same in all lanes, which the compiler must be told too: else all that follows
      // from it, down to the descriptors of products, is kept per lane and moved to
      // uniform registers one by one.
      return __shfl_sync(0xffffffffu, tile, 0);
    }
  }

  // The tile that Next returned last.
  __device__ WgmmaWork<kShape> Work(int tile) const {
    if constexpr (kShape.varlen) {
      return slot_.work;
    } else {
      return DecodeWork<kShape>(p_, tile);
    }
  }

 private:
  // The first CTA's producer asks for all CTAs of a cluster.
  __device__ static bool AsksForCluster() { return blockIdx.x % kShape.cluster == 0; }

  // Its next number of the queue, or -1.
  __device__ int NextOfCounter() {
    int tile = blockIdx.x / kShape.cluster;
    if (round_++ > 0) {
      const int fetched = kShape.fetch_ahead ? fetched_ : atomicAdd(p_.next_tile, 1);
      if (fetched == tiles_ - 1) *p_.next_tile = 0;
      tile = fetched + gridDim.x / kShape.cluster;
    }
    if (tile >= tiles_) tile = -1;
    return tile;
  }

  // The producer of each CTA: the first one's stores the number in all CTAs' slots, and all of them
  // read it there. A slot is free once every reader of the cluster has said so to the first CTA.
  __device__ int NextOfCluster() {
    const uint32_t full = barriers_.WorkFull(slot_.slot);
    const uint32_t number = barriers_.WorkTile(slot_.slot);
    ptx::MbarrierArriveExpectBytes(full, sizeof(int));
    if (AsksForCluster()) {
      const int tile = NextOfCounter();
      ptx::MbarrierWait(barriers_.WorkEmpty(slot_.slot), slot_.phase ^ 1);
#pragma unroll
      for (int rank = 0; rank < kShape.cluster; ++rank) {
        ptx::StoreAsync32(ptx::MapShared(number, rank), static_cast<uint32_t>(tile),
                          ptx::MapShared(full, rank));
      }
    }
    ptx::MbarrierWaitForPeers(full, slot_.phase);
    const int tile = ptx::LoadShared(number);
    GiveBack(tile);
    slot_.Advance();
    return tile;
  }

  // The slot whose number has been read.
  __device__ void GiveBack(int tile) const {
    const uint32_t empty = barriers_.WorkEmpty(slot_.slot);
    if constexpr (kShape.cluster == 1) {
      ptx::MbarrierArrive(empty);
    } else if (tile >= -1) {  // always; a relaxed arrival would not wait for the number otherwise
      ptx::MbarrierArriveClusterRelaxed(ptx::MapShared(empty, 0));
    }
  }

  __device__ void Publish(int tile, uint32_t slot) {
    slot_.work.head = -1;
    if (tile >= 0) slot_.work = DecodeWork<kShape>(p_, tile);
    PackedWork<kShape>::StorePlace(slot, slot_.work);
    if (tile < 0) return;
    const SequenceBlock& of = p_.blocks[tile / p_.heads];
    PackedWork<kShape>::StoreSequence(slot, of);
    slot_.work.first_q = of.first_q;
    slot_.work.first_kv = of.first_kv;
  }

  __device__ static int Tiles(const WgmmaParamsOf<kShape>& p) {
    if constexpr (kShape.varlen) {
      return *p.block_count * p.heads;
    } else {
      return BlocksPerHead<kShape>(p) * p.heads;
    }
  }

  const WgmmaParamsOf<kShape>& p_;
  const WgmmaBarriers<kShape> barriers_;
  const int tiles_;
  int round_ = 0;
  int fetched_ = 0;  // with fetch_ahead: what the counter said
  // No empty member where there is no tile to keep: one moved instructions of other kernels.
  std::conditional_t<kShape.varlen, PackedSlot<kShape>, RingCursor<kWorkSlots>> slot_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SCHEDULE_CUH_
