// SPDX-License-Identifier: Apache-2.0
// Where the CTAs that share the keys of a block of queries are a cluster: each leaves its part of
// O in its own shared memory, and each joins a share of the block, reading what its peers left
// there (PTX ISA, "mapa", "barrier.cluster"). The order is that of the keys, as in split_join.cuh.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_CLUSTER_JOIN_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_CLUSTER_JOIN_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/shared/joined_piece.cuh"
#include "kernels/sdpa/wgmma/join/split_join.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// One thread's part of it; all threads of the warpgroups that compute call it together. The
// producers' have exited or will, and a cluster's barrier waits for no thread that has.
template <WgmmaShape kShape>
class WgmmaClusterJoin {
 public:
  //   smem: base of the tiles
  //   thread: among those that compute
  __device__ WgmmaClusterJoin(const WgmmaDecodeParams& p, uint32_t smem, int thread)
      : p_(p), part_(smem + MakeSmem(kShape).k), thread_(thread) {}

  // Of the CTA's rows that lie in Q.
  //   row: the thread's first in the block; the second is eight rows on
  __device__ void Run(const WgmmaWork<kShape>& work, int row,
                      const float (&out)[kShape.head_dim / 2],
                      const WgmmaSoftmax<kShape>& softmax) const {
    // The place is K's and V's, which other warpgroups' products may read yet.
    if constexpr (kShape.consumers > 1) ptx::NamedBarrierSync(kJoinBarrier, kThreads);
    Leave(work, row, out, softmax);
    __syncwarp();  // an aligned barrier
    ptx::ClusterSync();
    if (p_.splits <= 2) {
      Join<2>(work);
    } else if (p_.splits <= 4) {
      Join<4>(work);
    } else if (p_.splits <= 8) {
      Join<8>(work);
    } else {
      Join<kMaxClusterSplits>(work);
    }
    __syncwarp();
    // Nobody exits while it is read.
    ptx::ClusterArriveRelaxed();
    ptx::ClusterWait();
  }

 private:
  static constexpr int kRows = TileM(kShape);
  static constexpr int kThreads = kShape.consumers * kWarpgroup;
  static constexpr int kQuads = kShape.head_dim / 4;  // pieces of a row
  static constexpr int kRowBytes = JoinRowBytes(kShape);
  static constexpr int kStats = kRows * kRowBytes;
  static_assert(JoinFitsInRing(kShape));

  __device__ void Leave(const WgmmaWork<kShape>& work, int row,
                        const float (&out)[kShape.head_dim / 2],
                        const WgmmaSoftmax<kShape>& softmax) const {
    const int lane_in_quad = thread_ % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (row + 8 * r >= work.Rows(p_)) continue;
      const uint32_t to = part_ + (row + 8 * r) * kRowBytes + lane_in_quad * 8;
#pragma unroll
      for (int piece = 0; piece < kShape.head_dim / 8; ++piece) {
        ptx::StoreShared(to + piece * 32, out[piece * 4 + 2 * r], out[piece * 4 + 2 * r + 1]);
      }
      if (lane_in_quad == 0) {
        ptx::StoreShared(part_ + kStats + (row + 8 * r) * 8, softmax.max[r], softmax.sum[r]);
      }
    }
  }

  //   kParts: as many as there are, or more
  template <int kParts>
  __device__ void Join(const WgmmaWork<kShape>& work) const {
    const int pieces = work.Rows(p_) * kQuads;
    const int rank = static_cast<int>(ptx::ClusterRank());
    const int end = (rank + 1) * pieces / p_.splits;
#pragma unroll 1
    for (int piece = rank * pieces / p_.splits + thread_; piece < end; piece += kThreads) {
      const int row = piece / kQuads;
      const int quad = piece % kQuads;
      float2 stats[kParts];
      float4 parts[kParts];
#pragma unroll
      for (int s = 0; s < kParts; ++s) {
        // Clamped: no branch stands between loads.
        const uint32_t peer = ptx::MapShared(part_, min(s, p_.splits - 1));
        stats[s] = ptx::LoadClusterPair(peer + kStats + row * 8);
        const uint4 x = ptx::LoadCluster128(peer + row * kRowBytes + quad * 16);
        parts[s] = make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z),
                               __uint_as_float(x.w));
        if (s < p_.splits) continue;
        stats[s] = make_float2(-INFINITY, 0.0f);
        parts[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      }
      JoinedPiece joined;
      joined.Add(stats, parts, p_.softmax_scale);
      joined.Store<kShape.head_dim, kShape.bf16>(p_.o, p_.lse, work.IndexOf(p_, work.Row(row)),
                                                 quad, p_.softmax_scale);
    }
  }

  const WgmmaDecodeParams& p_;
  const uint32_t part_;  // where this CTA's part lies, and in each peer its own
  const int thread_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_JOIN_CLUSTER_JOIN_CUH_
