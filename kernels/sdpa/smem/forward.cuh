// SPDX-License-Identifier: Apache-2.0
// The fused SDPA forward kernel of the simt and wmma families.
//
// One CTA computes tile_m query rows of one head. It walks over K/V tiles with
// the online softmax of FlashAttention (arXiv 2205.14135, algorithm 1):
//
//   for each K/V tile:  S = Q K^T;  P, m, l = softmax update;  O = O * rescale + P V
//   O /= l;  LSE = m + log(l)
//
// The families differ in what computes S and O (simt/, wmma/); everything else
// lies beside this file. S and P pass through shared memory, unless softmax_in_registers
// keeps them in fragments (wmma/fused.cuh).

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_FORWARD_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_FORWARD_CUH_

#include <type_traits>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/smem/barrier.cuh"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/epilogue.cuh"
#include "kernels/sdpa/smem/kv_ring.cuh"
#include "kernels/sdpa/smem/schedule.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/simt/output.cuh"
#include "kernels/sdpa/smem/simt/scores.cuh"
#include "kernels/sdpa/smem/smem_layout.h"
#include "kernels/sdpa/smem/softmax.cuh"
#include "kernels/sdpa/smem/wmma/fused.cuh"
#include "kernels/sdpa/smem/wmma/output.cuh"
#include "kernels/sdpa/smem/wmma/scores.cuh"

namespace warpledger::sdpa::smem {

// One query tile. Starts and ends without a barrier.
template <Config kConfig>
__device__ void ComputeTile(const ForwardParams& params, unsigned char* smem, int index) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr bool kFused = kConfig.softmax_in_registers >= 2;
  constexpr bool kProducers = kConfig.producer_warps > 0;
  using Pipeline = std::conditional_t<kProducers, KvRing<kConfig>, KvPipeline<kConfig>>;
  using Unfused =
      std::conditional_t<kConfig.wmma_pv != 0, OutputWmma<kConfig>, OutputSimt<kConfig>>;

  const float scale = RowExp<kConfig>::Scale(params.softmax_scale);
  half* q = reinterpret_cast<half*>(smem + kSmem.q);  // (tile_m, head_dim) fp16
  const Work work = MakeWork<kConfig>(params, index);

  Pipeline pipeline(smem, work);
  if constexpr (kProducers) {
    if (threadIdx.x == 0) pipeline.Init();
    __syncthreads();
    if (threadIdx.x >= ComputeThreads(kConfig)) {
      pipeline.Produce();
      return;
    }
  }
  CopyTile<kConfig, TileM(kConfig)>(q, work.q, work.rows);
  SoftmaxState<kConfig> softmax(smem);
  softmax.Reset();
  // Without producers the first Acquire publishes Q and the state.
  if constexpr (kProducers) ComputeBarrier<kConfig>();

  if constexpr (kFused) {
    WmmaFused<kConfig> fused;
    for (int tile = 0; tile < work.kv_tiles; ++tile) {
      const KvTile kv = pipeline.Acquire(tile);
      fused.Step(softmax, q, kv, work, scale);
      pipeline.Release(tile);
    }
    fused.Store(smem, softmax, work);
  } else {
    Unfused output;
    for (int tile = 0; tile < work.kv_tiles; ++tile) {
      const KvTile kv = pipeline.Acquire(tile);
      if constexpr (kConfig.wmma_qk) {
        ComputeScoresWmma<kConfig>(softmax, q, kv, work, scale);
      } else {
        ComputeScoresSimt<kConfig>(softmax.scores, q, kv, work.seq_kv);
      }
      ComputeBarrier<kConfig>();
      SoftmaxTile<kConfig>(softmax, work, kv.first_key, scale);
      ComputeBarrier<kConfig>();
      output.Accumulate(softmax, kv, work.seq_kv);
      pipeline.Release(tile);
    }
    if (work.kv_tiles == 0) ComputeBarrier<kConfig>();  // Reset has none behind it yet
    if constexpr (kConfig.wmma_pv) {
      output.Store(smem, softmax, work);
    } else {
      output.Store(softmax, work);
    }
  }
  StoreLse<kConfig>(softmax, work);
}

// The kernel's body, for CTAs of Threads(kConfig) threads: query_tiles * heads_q * batch of
// them or, persistent, any number.
//   smem: SmemBytes(kConfig) of shared memory, 32-byte aligned
template <Config kConfig>
__device__ void SdpaForward(const ForwardParams& params, unsigned char* smem) {
  if constexpr (kConfig.persistent > 0) {
    WorkQueue<kConfig> queue(params, reinterpret_cast<int*>(smem + MakeSmemLayout(kConfig).queue));
    for (int index = queue.First(); index >= 0; index = queue.Next()) {
      ComputeTile<kConfig>(params, smem, index);
    }
  } else {
    ComputeTile<kConfig>(params, smem, blockIdx.x);
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_FORWARD_CUH_
