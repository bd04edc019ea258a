// SPDX-License-Identifier: Apache-2.0
// Which query rows and keys a CTA of the mma family works on.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_SCHEDULE_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_SCHEDULE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/shared/scores.cuh"

namespace warpledger::sdpa {

// One tile_m block of queries, and the K/V tiles that this CTA sees of it.
template <MmaShape kShape>
struct MmaWork {
  // The head's (seq, KvColumns or head_dim) in units of two bytes, whatever they are; of K and V
  // rows are KStride and VStride apart. Q's where it is packed or strided alone, and O's where it
  // is strided: else `first` says where in Q and O a row lies.
  const half* q;
  half* o;
  const half* k;
  const half* v;
  const float* k_scales;  // of the head, with 8-bit K and V (forward_params.h)
  const float* v_scales;
  int64_t first;   // LSE's row, over batch and heads, of position 0 of the (first) head
  int first_row;   // of the tile in its head
  int rows;        // valid ones, 1..tile_m
  int tile_begin;  // K/V tiles [tile_begin, tile_end)
  int tile_end;
  int whole_tiles;  // K/V tiles below this one need no mask
  int head;         // over the batch

  // The row of `row` of the tile in LSE, and in Q and O where they have no strides.
  __device__ int64_t GlobalRow(const MmaParams& p, int row) const {
    const int in_head = first_row + row;
    if constexpr (kShape.pack_heads) {
      const int position = in_head / p.group_size;
      const int head = in_head - position * p.group_size;
      return first + int64_t{head} * p.forward.seq_q + position;
    } else {
      return first + in_head;
    }
  }
  // How far behind `q` or `o` it lies there, where they have strides.
  __device__ int64_t Elements(const MmaParams& p, const TensorStrides& strides, int row) const {
    const int in_head = first_row + row;
    if constexpr (kShape.pack_heads) {
      const int position = in_head / p.group_size;
      const int head = in_head - position * p.group_size;
      return head * strides.head + position * strides.row;
    } else {
      return in_head * strides.row;
    }
  }
  // The keys that `row` of the tile sees: [0, VisibleKeys).
  __device__ int VisibleKeys(const MmaParams& p, int row) const {
    const ForwardParams& f = p.forward;
    if (!f.causal) return f.seq_kv;
    int position = first_row + row;
    if constexpr (kShape.pack_heads) position /= p.group_size;
    return CausalKeys(f, position);
  }
};

// Where query head `head`, over the batch, has its columns of the projection, which are
// rows of W: Q's heads, then K's, then V's.
struct ProjectedHead {
  int batch;
  int q_row;
  int k_row;
  int v_row;
};
__device__ inline ProjectedHead LocateHead(const ForwardParams& f, int head) {
  constexpr int kHeadDim = 64;
  const int batch = head / f.heads_q;
  const int q_head = head - batch * f.heads_q;
  const int kv_head = q_head / (f.heads_q / f.heads_kv);
  return {batch, q_head * kHeadDim, (f.heads_q + kv_head) * kHeadDim,
          (f.heads_q + f.heads_kv + kv_head) * kHeadDim};
}

// The parameters of a shape that has strides.
__device__ inline const MmaStridedParams& Strided(const MmaParams& p) {
  return static_cast<const MmaStridedParams&>(p);
}

// Units of two bytes from one row of K to the next, and of Q where it is packed.
template <MmaShape kShape>
__device__ int64_t KStride(const MmaParams& p) {
  if constexpr (kShape.strided) return Strided(p).k.row;
  if constexpr (ReadsPacked(kShape)) return p.forward.projection.columns;
  return KvColumns(kShape);
}
template <MmaShape kShape>
__device__ int64_t VStride(const MmaParams& p) {
  if constexpr (kShape.strided) return Strided(p).v.row;
  return KStride<kShape>(p);
}

// Where head `head`, numbered over batches of `heads` each, begins.
__device__ inline int64_t HeadBegin(const TensorStrides& strides, int head, int heads) {
  const int batch = head / heads;
  return batch * strides.batch + (head - batch * heads) * strides.head;
}

template <MmaShape kShape>
__device__ MmaWork<kShape> DecodeMmaWork(const MmaParams& p, int tile, int split) {
  const ForwardParams& f = p.forward;
  MmaWork<kShape> w;
  int head;
  int block;
  if (kShape.longest_first && f.causal) {
    // Heads whose K/V fit into L2 together go before the next ones; among them the
    // longest tiles first.
    const int tiles_per_group = p.heads_in_flight * p.query_tiles;
    const int group = tile / tiles_per_group;
    const int in_group = tile - group * tiles_per_group;
    const int first_head = group * p.heads_in_flight;
    const int heads = min(p.heads_in_flight, p.heads - first_head);
    const int rank = in_group / heads;
    block = p.query_tiles - 1 - rank;
    head = first_head + in_group - rank * heads;
  } else {
    head = tile / p.query_tiles;
    block = tile - head * p.query_tiles;
  }
  const int kv_head = kShape.pack_heads ? head : head / p.group_size;
  if constexpr (Is8Bit(kShape)) {
    w.k_scales = f.k_scales + int64_t{kv_head} * f.kv_scale_stride;
    w.v_scales = f.v_scales + int64_t{kv_head} * f.kv_scale_stride;
  }
  if constexpr (kShape.strided) {
    const MmaStridedParams& s = Strided(p);
    const int q_head = kShape.pack_heads ? head * p.group_size : head;
    w.q = static_cast<const half*>(f.q) + HeadBegin(s.q, q_head, f.heads_q);
    w.k = static_cast<const half*>(f.k) + HeadBegin(s.k, kv_head, f.heads_kv);
    w.v = static_cast<const half*>(f.v) + HeadBegin(s.v, kv_head, f.heads_kv);
    w.o = static_cast<half*>(f.o) + HeadBegin(s.o, q_head, f.heads_q);
  } else if constexpr (kShape.input == MmaInput::kGiven) {
    const int64_t kv_offset = int64_t{kv_head} * f.seq_kv * KvColumns(kShape);
    w.k = static_cast<const half*>(f.k) + kv_offset;
    w.v = static_cast<const half*>(f.v) + kv_offset;
  } else if constexpr (ReadsPacked(kShape)) {
    const ProjectedHead at = LocateHead(f, head);
    const auto* rows = static_cast<const half*>(f.projection.qkv) +
                       int64_t{at.batch} * f.seq_kv * f.projection.columns;
    w.q = rows + at.q_row;
    w.k = rows + at.k_row;
    w.v = rows + at.v_row;
  }
  w.first = int64_t{head} * (kShape.pack_heads ? p.group_size : 1) * f.seq_q;
  if constexpr (kShape.varlen) {
    w.first = head * static_cast<const MmaVarlenParams&>(p).lse_head_stride;
  }
  w.first_row = block * TileM(kShape);
  w.head = head;
  w.rows = min(TileM(kShape), p.rows - w.first_row);
  const int last_visible = max(w.VisibleKeys(p, w.rows - 1), 0);
  const int tiles = (last_visible + kShape.tile_n - 1) / kShape.tile_n;
  w.tile_begin = 0;
  w.tile_end = tiles;
  if constexpr (kShape.split_kv) {
    const int share = (tiles + p.splits - 1) / p.splits;
    w.tile_begin = min(split * share, tiles);
    w.tile_end = min(w.tile_begin + share, tiles);
  }
  w.whole_tiles = max(w.VisibleKeys(p, 0), 0) / kShape.tile_n;
  return w;
}

// The parameters of a sequence by itself, of which the list has `block`.
template <MmaShape kShape>
__device__ MmaVarlenParams OfSequence(const MmaVarlenParams& p, const SequenceBlock& block) {
  MmaVarlenParams one = p;
  ForwardParams& f = one.forward;
  f.q = static_cast<const half*>(f.q) + block.first_q * p.q.row;
  f.k = static_cast<const half*>(f.k) + block.first_kv * p.k.row;
  f.v = static_cast<const half*>(f.v) + block.first_kv * p.v.row;
  f.o = static_cast<half*>(f.o) + block.first_o * p.o.row;
  if (f.lse != nullptr) f.lse += block.first_lse;
  f.seq_q = block.seq_q;
  f.seq_kv = block.seq_kv;
  one.rows = block.seq_q;
  one.query_tiles = (block.seq_q + TileM(kShape) - 1) / TileM(kShape);
  one.heads_in_flight = block.heads_in_flight;
  return one;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_SCHEDULE_CUH_
