// SPDX-License-Identifier: Apache-2.0
// The projection inside of the attention kernel, in its two forms: tiles that a CTA makes
// for itself where it would load them, and rows that the CTAs of a head's cluster make for
// each other.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_FUSED_PROJECTION_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_FUSED_PROJECTION_CUH_

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/projection/project.cuh"
#include "kernels/sdpa/mma/schedule.cuh"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

__device__ inline unsigned char* GenericAddress(uint32_t shared) {
  return static_cast<unsigned char*>(__cvta_shared_to_generic(static_cast<size_t>(shared)));
}

// The first row of x that belongs to position `row` of a head's batch.
__device__ inline const half* RowsOfX(const ForwardParams& f, int batch, int row) {
  return static_cast<const half*>(f.projection.x) +
         (int64_t{batch} * f.seq_kv + row) * f.projection.embed_dim;
}

// Tiles of Q, K and V, made from x in place of being copied. All threads of the CTA call.
template <MmaShape kShape>
class RecomputedTiles {
 public:
  __device__ explicit RecomputedTiles(uint32_t smem) : smem_(smem) {}

  // Makes Q's tile and starts the load of the W that K and V take. Q is readable behind
  // the next barrier.
  __device__ void Start(const MmaParams& p, const MmaWork<kShape>& work) const {
    const ProjectedHead head = LocateHead(p.forward, work.head);
    const half* x = RowsOfX(p.forward, head.batch, work.first_row);
    const Projector<1, 1, kShape.layernorm, false> projector(Region(), p.forward.projection,
                                                             threadIdx.x);
    if constexpr (kShape.layernorm) projector.MeasureRows(x, work.rows);
    typename Projector<1, 1, kShape.layernorm, false>::Sums sums = {};
    projector.Run(
        x, work.rows, [&](int) { return head.q_row; }, sums);
    projector.ForEachPair(sums, [&](int row, int column, uint32_t pair) {
      StorePair(smem_ + kSmem.q, row, column, pair);
    });
    __syncthreads();  // Q's W has been read
    Kv(p).LoadW([&](int slab) { return slab == 0 ? head.k_row : head.v_row; });
  }

  // Makes K/V tile `n` at `k` and `v`; readable behind the next barrier. Nobody reads what
  // was there.
  __device__ void MakeKv(const MmaParams& p, const MmaWork<kShape>& work, int n, uint32_t k,
                         uint32_t v) const {
    const int first_key = n * kProjectionRows;
    const int rows = p.forward.seq_kv - first_key;
    const half* x = RowsOfX(p.forward, LocateHead(p.forward, work.head).batch, first_key);
    const KvProjector projector = Kv(p);
    if constexpr (kShape.layernorm) projector.MeasureRows(x, rows);
    typename KvProjector::Sums sums = {};
    projector.Run(
        x, rows, [](int) { return 0; }, sums);
    projector.ForEachPair(sums, [&](int row, int column, uint32_t pair) {
      StorePair(column < 64 ? k : v, row, column % 64, pair);
    });
  }

 private:
  static constexpr MmaSmem kSmem = MakeSmem(kShape);
  using KvProjector = Projector<1, 2, kShape.layernorm, true>;

  __device__ unsigned char* Region() const { return GenericAddress(smem_ + kSmem.projection); }
  __device__ KvProjector Kv(const MmaParams& p) const {
    return KvProjector(Region(), p.forward.projection, threadIdx.x);
  }
  __device__ static void StorePair(uint32_t tile, int row, int column, uint32_t pair) {
    StoreSharedPair(
        tile + ChunkOffset(kShape.layout, kShape.head_dim, row, column / 8) + column % 8 * 2, pair);
  }

  const uint32_t smem_;
};

// Projects the CTA's 64 rows of its head to Q, K and V in global memory and waits until
// the cluster, which is the head's CTAs, has done so too. Its shared memory is free again.
template <MmaShape kShape>
__device__ void ProjectForCluster(unsigned char* smem, const MmaParams& p) {
  constexpr int kSlabs = 3;
  constexpr int kThreads = ConsumerThreads(kShape);
  using ClusterProjector = Projector<kThreads / 128, kSlabs, kShape.layernorm, false>;
  const ForwardParams& f = p.forward;
  const int head_over_batch = blockIdx.x / p.query_tiles;
  const int first_row = (blockIdx.x - head_over_batch * p.query_tiles) * kProjectionRows;
  const int rows = min(f.seq_kv - first_row, kProjectionRows);
  const ProjectedHead head = LocateHead(f, head_over_batch);
  const half* x = RowsOfX(f, head.batch, first_row);
  const auto w_row = [&](int slab) {
    return slab == 0 ? head.q_row : slab == 1 ? head.k_row : head.v_row;
  };

  const ClusterProjector projector(smem, f.projection, threadIdx.x);
  if constexpr (kShape.layernorm) projector.MeasureRows(x, rows);
  typename ClusterProjector::Sums sums = {};
  projector.Run(x, rows, w_row, sums);

  // Through shared memory, so that whole rows of 128 bytes leave it.
  __syncthreads();
  const uint32_t base = MmaSharedAddress(smem);
  projector.ForEachPair(sums, [&](int row, int column, uint32_t pair) {
    StoreSharedPair(base + column / 64 * kProjectionTileBytes +
                        ChunkOffset(MmaLayout::kXorSwizzle, 64, row, column % 64 / 8) +
                        column % 8 * 2,
                    pair);
  });
  __syncthreads();
  auto* out = static_cast<half*>(f.projection.qkv) +
              (int64_t{head.batch} * f.seq_kv + first_row) * f.projection.columns;
  for (int i = threadIdx.x; i < kProjectionRows * kSlabs * 8; i += kThreads) {
    const int chunk = i % 8;
    const int slab = i / 8 % kSlabs;
    const int row = i / (8 * kSlabs);
    if (row >= rows) break;
    const auto* piece = reinterpret_cast<const uint4*>(
        smem + slab * kProjectionTileBytes + ChunkOffset(MmaLayout::kXorSwizzle, 64, row, chunk));
    *reinterpret_cast<uint4*>(out + int64_t{row} * f.projection.columns + w_row(slab) + chunk * 8) =
        *piece;
  }
  ptx::ClusterSync();  // all rows of the head are visible to the cluster
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_FUSED_PROJECTION_CUH_
