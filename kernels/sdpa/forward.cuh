// The fused SDPA forward kernel of the simt and wmma families.
//
// One CTA computes tile_m query rows of one head. It walks over K/V tiles with
// the online softmax of FlashAttention (arXiv 2205.14135, algorithm 1):
//
//   for each K/V tile:  S = Q K^T;  P, m, l = softmax update;  O = O * rescale + P V
//   O /= l;  LSE = m + log(l)
//
// The families differ in what computes S and O (simt/, wmma/); everything else
// is shared (parts/). S and P pass through shared memory.

#ifndef WARPLEDGER_KERNELS_SDPA_FORWARD_CUH_
#define WARPLEDGER_KERNELS_SDPA_FORWARD_CUH_

#include <type_traits>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/forward_params.h"
#include "kernels/sdpa/parts/copy.cuh"
#include "kernels/sdpa/parts/epilogue.cuh"
#include "kernels/sdpa/parts/schedule.cuh"
#include "kernels/sdpa/parts/softmax.cuh"
#include "kernels/sdpa/simt/output.cuh"
#include "kernels/sdpa/simt/scores.cuh"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/wmma/output.cuh"
#include "kernels/sdpa/wmma/scores.cuh"

namespace warpledger::sdpa {

// The kernel's body, for a grid of query_tiles * heads_q * batch CTAs of
// Threads(kConfig) threads with SmemBytes(kConfig) of dynamic shared memory.
template <Config kConfig>
__device__ void SdpaForward(const ForwardParams& params) {
  static_assert(!WhyInvalid(kConfig), "an illegal combination of toggles; see WhyInvalid");
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  using Output = std::conditional_t<kConfig.wmma_pv != 0, OutputWmma<kConfig>, OutputSimt<kConfig>>;

  extern __shared__ __align__(32) unsigned char smem[];
  half* q = reinterpret_cast<half*>(smem + kSmem.q);  // (tile_m, head_dim) fp16
  const Work work = MakeWork<kConfig>(params);

  KvPipeline<kConfig> pipeline(smem, work);
  CopyTile<kConfig, TileM(kConfig)>(q, work.q, work.rows);
  SoftmaxState<kConfig> softmax(smem);
  softmax.Reset();
  Output output;

  for (int tile = 0; tile < work.kv_tiles; ++tile) {
    const KvTile kv = pipeline.Acquire(tile);
    if constexpr (kConfig.wmma_qk) {
      ComputeScoresWmma<kConfig>(softmax.scores, q, kv);
    } else {
      ComputeScoresSimt<kConfig>(softmax.scores, q, kv, work.seq_kv);
    }
    __syncthreads();
    SoftmaxTile<kConfig>(softmax, work, kv.first_key, params.softmax_scale);
    __syncthreads();
    output.Accumulate(softmax, kv, work.seq_kv);
  }

  if (work.kv_tiles == 0) __syncthreads();  // Reset has no barrier behind it yet
  if constexpr (kConfig.wmma_pv) {
    output.Store(smem, softmax, work);
  } else {
    output.Store(softmax, work);
  }
  StoreLse<kConfig>(softmax, work);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_FORWARD_CUH_
