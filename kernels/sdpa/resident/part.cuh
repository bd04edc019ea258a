// SPDX-License-Identifier: Apache-2.0
// Who a warpgroup is in the resident family, and what it knows of its peers.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_PART_CUH_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_PART_CUH_

#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/shared/warpgroup.h"
#include "kernels/sdpa/shared/wgmma_params.h"

namespace warpledger::sdpa {

// A warpgroup's barriers.
enum ResidentBarrier { kQFull, kKFull, kVFull, kKvRead, kStatistics, kOutputs };

// Parts are numbered over CTAs first, so that with fewer chunks than parts every CTA
// has one. Peer k of part i is part i ^ k, and part i is that one's peer k.
template <ResidentShape kShape>
struct ResidentPart {
  static constexpr ResidentSmem kSmem = MakeSmem(kShape);
  static constexpr int kParts = Parts(kShape);

  uint32_t smem;  // base of the tiles
  int rank;       // of the CTA in its cluster
  int warp;       // of the CTA, the same value in all its lanes
  int first_row;  // of Q
  int head;       // over batch and query heads

  __device__ ResidentPart(const WgmmaParams& p, uint32_t smem_base)
      : smem(smem_base),
        rank(kShape.cluster == 1 ? 0 : blockIdx.x % kShape.cluster),
        warp(__shfl_sync(0xffffffffu, threadIdx.x / 32, 0)),
        first_row(blockIdx.x / kShape.cluster * kRowsPerConsumer),
        head(blockIdx.z * p.group_size + blockIdx.y) {}

  __device__ int Warpgroup() const { return kShape.warpgroups == 1 ? 0 : warp / 4; }
  __device__ int Index() const { return Warpgroup() * kShape.cluster + rank; }
  __device__ static int Lane() { return threadIdx.x % 32; }
  // The first of this thread's two rows; the other is 8 further.
  __device__ int RowInTile() const { return warp % 4 * 16 + Lane() / 4; }

  // Arrays over warpgroups of `stride` bytes each, from `offset`: this part's element,
  // and peer k's.
  __device__ uint32_t Mine(int offset, int stride) const {
    return smem + offset + Warpgroup() * stride;
  }
  __device__ uint32_t Peers(int offset, int stride, int k) const {
    const uint32_t here = smem + offset + (Warpgroup() ^ k / kShape.cluster) * stride;
    return IsHere(k) ? here : ptx::MapShared(here, rank ^ k % kShape.cluster);
  }
  // Peer k is in the same CTA.
  __device__ static constexpr bool IsHere(int k) { return k % kShape.cluster == 0; }

  __device__ uint32_t Barrier(ResidentBarrier which) const {
    return Mine(kSmem.barriers + which * 8, kResidentBarriers * 8);
  }
  __device__ uint32_t PeersBarrier(ResidentBarrier which, int k) const {
    return Peers(kSmem.barriers + which * 8, kResidentBarriers * 8, k);
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_PART_CUH_
