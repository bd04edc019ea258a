// SPDX-License-Identifier: Apache-2.0
// Which query rows and which keys a CTA works on.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SCHEDULE_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SCHEDULE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/smem/shape.h"

namespace warpledger::sdpa::smem {

// One CTA's share: up to tile_m consecutive query rows of one head.
struct Work {
  const half* q;  // (rows, head_dim) fp16, the first row of the tile
  const half* k;  // (seq_kv, head_dim) fp16, this head's keys
  const half* v;  // (seq_kv, head_dim) fp16
  half* o;        // (rows, head_dim) fp16
  float* lse;     // (rows) fp32, or null
  int rows;       // valid query rows, 1..tile_m
  int seq_kv;
  int first_visible_limit;  // keys that row 0 sees; row r sees r more when causal
  int causal;
  int kv_tiles;  // tiles that hold a key which the last row sees

  // Row `row` sees keys [0, VisibleKeys(row)).
  __device__ int VisibleKeys(int row) const {
    return causal ? min(first_visible_limit + row, seq_kv) : seq_kv;
  }
};

// Piece `index` of the launch's query_tiles * heads_q * batch. Query tiles go
// fastest, so that neighbouring CTAs share K/V in L2, unless cta_order says otherwise.
template <Config kConfig>
__device__ Work MakeWork(const ForwardParams& p, int index) {
  int tile;
  int head;  // over batch and query heads
  if constexpr (kConfig.cta_order > 0) {
    const int heads = p.heads_q * p.batch;
    tile = index / heads;
    head = index - tile * heads;
    if (kConfig.cta_order == 2 && p.causal) tile = p.query_tiles - 1 - tile;
  } else {
    tile = index % p.query_tiles;
    head = index / p.query_tiles;
  }
  const int batch = head / p.heads_q;
  const int kv_head = batch * p.heads_kv + (head % p.heads_q) / (p.heads_q / p.heads_kv);
  const int first_row = tile * TileM(kConfig);
  const int64_t row = int64_t{head} * p.seq_q + first_row;

  Work w;
  w.q = static_cast<const half*>(p.q) + row * kConfig.head_dim;
  w.k = static_cast<const half*>(p.k) + int64_t{kv_head} * p.seq_kv * kConfig.head_dim;
  w.v = static_cast<const half*>(p.v) + int64_t{kv_head} * p.seq_kv * kConfig.head_dim;
  w.o = static_cast<half*>(p.o) + row * kConfig.head_dim;
  w.lse = p.lse == nullptr ? nullptr : p.lse + row;
  w.rows = min(TileM(kConfig), p.seq_q - first_row);
  w.seq_kv = p.seq_kv;
  w.first_visible_limit = first_row + p.seq_kv - p.seq_q + 1;
  w.causal = p.causal;
  const int last_limit = max(w.VisibleKeys(w.rows - 1), 0);
  w.kv_tiles = (last_limit + TileN(kConfig) - 1) / TileN(kConfig);
  return w;
}

// The counter behind the queue of an instance. Each instance is a translation unit
// of its own, so each has its own: two launches of one instance must not overlap on
// a device. The last fetch of a launch sets it back.
[[maybe_unused]] static __device__ int next_work = 0;

// The pieces of work that one CTA does, in order.
//   persistent 0  one, by the CTA's number
//   persistent 1  every gridDim.x-th
//   persistent 2  the first by the CTA's number, the others from a counter
// All threads call Next(); between two pieces it holds a CTA barrier, after which
// all shared memory may be overwritten.
template <Config kConfig>
class WorkQueue {
 public:
  // `slot`: an int in shared memory, used at level 2 alone.
  __device__ WorkQueue(const ForwardParams& p, int* slot)
      : total_(p.query_tiles * p.heads_q * p.batch), slot_(slot) {}

  // The index of the first piece, then of the next; -1 when there is none.
  __device__ int First() {
    if (static_cast<int>(blockIdx.x) >= total_) return -1;
    Fetch();
    index_ = blockIdx.x;
    return index_;
  }
  __device__ int Next() {
    if constexpr (kConfig.persistent == 1) {
      index_ += gridDim.x;
      __syncthreads();
    } else {
      if (threadIdx.x == 0) *slot_ = fetched_;
      __syncthreads();
      index_ = *slot_;
      __syncthreads();  // before the slot is written again
      if (index_ < total_) Fetch();
    }
    return index_ < total_ ? index_ : -1;
  }

 private:
  // Asks for the piece after the one that starts now: the answer has all of it to
  // arrive. A launch fetches exactly `total_` times, so the last one is known.
  __device__ void Fetch() {
    if constexpr (kConfig.persistent == 2) {
      if (threadIdx.x != 0) return;
      const int fetch = atomicAdd(&next_work, 1);
      if (fetch == total_ - 1) next_work = 0;
      fetched_ = fetch + gridDim.x;
    }
  }

  int total_;
  int* slot_;
  int index_ = 0;
  int fetched_ = 0;
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SCHEDULE_CUH_
