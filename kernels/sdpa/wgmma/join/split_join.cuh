// SPDX-License-Identifier: Apache-2.0
// Where several CTAs share the keys of a block of queries: each leaves its part of O in global
// memory, and the last to come joins the parts, or a kernel behind this one (join_kernel.h). The
// order is that of the keys, whoever joins, so that the same inputs give the same bits.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_SPLIT_JOIN_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_SPLIT_JOIN_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/atomic.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/shared/joined_piece.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// One thread's part of it; all threads of the warpgroups that compute call it together.
template <WgmmaShape kShape>
class WgmmaSplitJoin {
 public:
  //   smem: base of the tiles
  //   thread: among those that compute
  __device__ WgmmaSplitJoin(const WgmmaDecodeParams& p, uint32_t smem, int thread)
      : p_(p), smem_(smem), thread_(thread) {}

  // The part of this CTA, of the rows that lie in Q.
  //   row: the thread's first in the block; the second is eight rows on
  __device__ void Leave(const WgmmaWork<kShape>& work, int row,
                        const float (&out)[kShape.head_dim / 2],
                        const WgmmaSoftmax<kShape>& softmax) const {
    const int lane_in_quad = thread_ % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (row + 8 * r >= work.Rows(p_)) continue;
      const int64_t part = PartOf(work, row + 8 * r);
      auto* to = reinterpret_cast<float2*>(p_.partial_out) + part * (kShape.head_dim / 2);
#pragma unroll
      for (int piece = 0; piece < kShape.head_dim / 8; ++piece) {
        to[piece * 4 + lane_in_quad] =
            make_float2(out[piece * 4 + 2 * r], out[piece * 4 + 2 * r + 1]);
      }
      if (lane_in_quad == 0) p_.partial_stats[part] = make_float2(softmax.max[r], softmax.sum[r]);
    }
  }

  // Once the CTA's part is left: true in the CTA that comes last.
  __device__ bool IsLast() const {
    const uint32_t flag = WgmmaBarriers<kShape>{smem_ + MakeSmem(kShape).barriers}.WorkTile(0);
    Sync();
    if (thread_ == 0) {
      int* arrivals = p_.arrivals + Tile();
      const bool last = ptx::AtomicIncrement(arrivals) == p_.splits - 1;
      if (last) *arrivals = 0;
      ptx::StoreShared(flag, last ? 1 : 0);
    }
    Sync();
    return ptx::LoadShared(flag) != 0;
  }

  // Loads are latency here, so that many of them stand side by side: of many parts where a thread
  // has one piece of O to join, of several pieces where parts are few.
  __device__ void Join(const WgmmaWork<kShape>& work) const {
    if (p_.splits <= 2) {
      JoinPieces<8, 2>(work);
    } else if (p_.splits <= 4) {
      JoinPieces<4, 4>(work);
    } else if (work.Rows(p_) * kQuads <= kThreads) {
      JoinPieces<1, 16>(work);
    } else {
      JoinPieces<2, 16>(work);
    }
  }

 private:
  static constexpr int kRows = TileM(kShape);
  static constexpr int kThreads = kShape.consumers * kWarpgroup;
  static constexpr int kQuads = kShape.head_dim / 4;  // pieces of a row

  // Each thread kPieces pieces at a time, of each kParts parts at a time.
  template <int kPieces, int kParts>
  __device__ void JoinPieces(const WgmmaWork<kShape>& work) const {
    const int pieces = work.Rows(p_) * kQuads;
    const int64_t tile = int64_t{Tile()} * p_.splits * kRows;
    const float2* all_stats = p_.partial_stats + tile;
    const float4* all_parts = p_.partial_out + tile * kQuads;
#pragma unroll 1
    for (int first = thread_; first < pieces; first += kPieces * kThreads) {
      JoinedPiece joined[kPieces];
#pragma unroll 1
      for (int split = 0; split < p_.splits; split += kParts) {
        float2 stats[kPieces][kParts];
        float4 parts[kPieces][kParts];
#pragma unroll
        for (int i = 0; i < kPieces; ++i) {
          // What is one too many is another's and added as nothing: no branch stands between loads.
          const int piece = min(first + i * kThreads, pieces - 1);
#pragma unroll
          for (int s = 0; s < kParts; ++s) {
            const int row = min(split + s, p_.splits - 1) * kRows;
            stats[i][s] = __ldcg(all_stats + row + piece / kQuads);
            parts[i][s] = __ldcg(all_parts + row * kQuads + piece);
            if (split + s < p_.splits) continue;
            // Of weight 0, which does not make nothing of an infinite V.
            stats[i][s] = make_float2(-INFINITY, 0.0f);
            parts[i][s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          }
        }
#pragma unroll
        for (int i = 0; i < kPieces; ++i) joined[i].Add(stats[i], parts[i], p_.softmax_scale);
      }
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        if (first + i * kThreads < pieces) Store(work, first + i * kThreads, joined[i]);
      }
    }
  }

  __device__ void Store(const WgmmaWork<kShape>& work, int piece, const JoinedPiece& joined) const {
    joined.Store<kShape.head_dim, kShape.bf16>(
        p_.o, p_.lse, work.IndexOf(p_, work.Row(piece / kQuads)), piece % kQuads, p_.softmax_scale);
  }

  // Where this CTA's part of a row of the block lies: the CTAs' parts one after another, each as
  // it lies in O for a kernel that knows no tiles.
  __device__ int64_t PartOf(const WgmmaWork<kShape>& work, int row) const {
    if constexpr (kShape.join_kernel) {
      const int split = static_cast<int>(blockIdx.x) % p_.splits;
      return split * OutputRows(p_) + work.IndexOf(p_, work.Row(row));
    } else {
      return int64_t{blockIdx.x} * kRows + row;
    }
  }
  __device__ static int64_t OutputRows(const WgmmaDecodeParams& p) {
    return int64_t{p.heads} * (kShape.pack_heads ? p.group_size : 1) * p.seq_q;
  }

  // Its CTAs are neighbours.
  __device__ int Tile() const { return static_cast<int>(blockIdx.x) / p_.splits; }
  __device__ static void Sync() { ptx::NamedBarrierSync(kJoinBarrier, kThreads); }

  const WgmmaDecodeParams& p_;
  const uint32_t smem_;
  const int thread_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_SPLIT_JOIN_CUH_
