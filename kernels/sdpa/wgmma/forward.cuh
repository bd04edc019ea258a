// SPDX-License-Identifier: Apache-2.0
// The fused SDPA forward kernel for Hopper: TMA, wgmma, warp specialisation.
//
// One warpgroup produces: its first thread asks TMA for Q, K and V tiles. The others compute
// (consumer.cuh).

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_FORWARD_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_FORWARD_CUH_

#include <cstdint>

#include "kernels/common/cluster.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/shared/exp_method.h"
#include "kernels/sdpa/wgmma/consumer.cuh"
#include "kernels/sdpa/wgmma/consumer_keys.cuh"
#include "kernels/sdpa/wgmma/load/copy_producer.cuh"
#include "kernels/sdpa/wgmma/load/producer.cuh"
#include "kernels/sdpa/wgmma/load/transpose.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// All threads of the cluster, ahead of their work. Orders no memory beyond the barriers'
// initialisation.
template <WgmmaShape kShape>
__device__ void SyncCluster() {
  if constexpr (kShape.cluster == 1) {
    __syncthreads();
  } else {
    __syncwarp();  // an aligned barrier
    ptx::ClusterArriveRelaxed();
    ptx::ClusterWait();
  }
}

// The kernel's body: a grid of persistent CTAs of Threads(kShape) threads with
// MakeSmem(kShape).bytes of dynamic shared memory.
template <WgmmaShape kShape>
__device__ void WgmmaForward(const WgmmaParamsOf<kShape>& p) {
  constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  extern __shared__ unsigned char raw_smem[];
  // The swizzle's atoms are 1024-byte aligned.
  const uint32_t aligned = (ptx::SharedAddress(raw_smem) + 1023) / 1024 * 1024;
  // In FP8 ptxas keeps the base per lane and moves each descriptor to uniform registers, 16
  // moves and 491 instructions a step instead of 459, unless a shuffle says that lanes agree.
  // With two levels it then spills 1 to 9 registers beside the causal mask, the polynomial or
  // scales per tile with a late wait, so not there.
  constexpr bool kTight =
      kShape.two_level && (kShape.causal || kShape.exp != ExpMethod::kExpFolded ||
                           (kShape.block_scale && kShape.late_wait == 2));
  constexpr bool kSayUniform = kShape.fp8 && !kTight;
  const uint32_t smem = kSayUniform ? __shfl_sync(0xffffffffu, aligned, 0) : aligned;
  const WgmmaBarriers<kShape> barriers = {smem + kSmem.barriers};

  // By a shuffle, so that the compiler knows it to be the same in all lanes.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / kWarpgroup, 0);
  if (threadIdx.x == 0) {
    ptx::PrefetchTensorMap(&p.k);
    ptx::PrefetchTensorMap(&p.q);
    ptx::PrefetchTensorMap(&p.v);
    if constexpr (kShape.tma_store) ptx::PrefetchTensorMap(&p.o_map);
    barriers.Init();
  }
  SyncCluster<kShape>();
  static_assert(!kShape.varlen || (kShape.dynamic_schedule && !StoresThroughQ(kShape) &&
                                   kShape.cluster == 1 && !kShape.p_smem));
  // With varlen the kernel before is the plan's.
  if constexpr (kShape.dependent_launch || kShape.varlen) {
    // Nothing that another kernel wrote was read before; what this one writes, the next one's
    // CTAs, which may start from now on, wait for.
    ptx::AwaitPriorKernel();
    ptx::LaunchDependents();
  }
  if constexpr (kShape.inline_loads) {
    WgmmaConsumer<kShape>(p, smem, barriers, warpgroup).Run();
  } else if (warpgroup == 0) {
    if constexpr (MovesRegisters(kShape)) ptx::DecreaseRegisters<ProducerRegisters(kShape)>();
    if constexpr (kShape.fp8) {
      const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
      if (warp > 0) VTransposer<kShape>(p, smem, barriers, warp - 1).Run();
    }
    if constexpr (kShape.cp_async) {
      WgmmaCopyProducer<kShape>(p, smem, barriers).Run();
    } else if (threadIdx.x == 0) {
      WgmmaProducer<kShape>(p, smem, barriers).Run();
    }
  } else {
    if constexpr (MovesRegisters(kShape)) ptx::IncreaseRegisters<ConsumerRegisters(kShape)>();
    WgmmaConsumer<kShape>(p, smem, barriers, warpgroup - 1).Run();
  }
  if constexpr (kShape.cluster > 1) {
    // A CTA may end only when its peers' last arrivals have come. Those are relaxed, so this
    // barrier has to release them. By a relaxed one a launch of an FP8 kernel failed on an H200,
    // once (reports/decisions/0049-forms-of-a-kernel.md; PTX ISA, "barrier.cluster").
    __syncwarp();
    ptx::ClusterSync();
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_FORWARD_CUH_
