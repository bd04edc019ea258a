// Which query rows and which keys a CTA works on.

#ifndef WARPLEDGER_KERNELS_SDPA_PARTS_SCHEDULE_CUH_
#define WARPLEDGER_KERNELS_SDPA_PARTS_SCHEDULE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/forward_params.h"

namespace warpledger::sdpa {

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

// The grid is one-dimensional, query tiles fastest, so that neighbouring CTAs
// share K/V in L2.
template <Config kConfig>
__device__ Work MakeWork(const ForwardParams& p) {
  const int tile = blockIdx.x % p.query_tiles;
  const int head = blockIdx.x / p.query_tiles;  // over batch and query heads
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

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PARTS_SCHEDULE_CUH_
