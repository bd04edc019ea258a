// Where several CTAs share the keys of a block of queries: each leaves its part of O in global
// memory, and the last to come joins the parts.
//
// Parts combine as in flash-decoding: with M the largest of the parts' maxima m_i,
// O = sum(exp(m_i - M) O_i) / sum(exp(m_i - M) l_i). The order is that of the keys, whoever
// joins, so that the same inputs give the same bits.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_JOIN_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_JOIN_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/parts/exp.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"

namespace warpledger::sdpa {

// The named barrier of all threads that compute.
inline constexpr int kJoinBarrier = 7;

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
      const int64_t part = int64_t{blockIdx.x} * kRows + row + 8 * r;
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
      // For all that stood before the barrier: a fence holds for what its thread has observed.
      __threadfence();
      int* arrivals = p_.arrivals + Tile();
      const bool last = atomicAdd(arrivals, 1) == p_.splits - 1;
      if (last) *arrivals = 0;
      __threadfence();
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
  using Exp = SoftmaxExp<ExpMethod::kExpFolded>;

  // What was joined of a piece: four columns of a row.
  struct Piece {
    float largest = -INFINITY;
    float sum = 0.0f;
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  };

  // Each thread kPieces pieces at a time, of each kParts parts at a time.
  template <int kPieces, int kParts>
  __device__ void JoinPieces(const WgmmaWork<kShape>& work) const {
    const int pieces = work.Rows(p_) * kQuads;
    const int64_t tile = int64_t{Tile()} * p_.splits * kRows;
    const float2* all_stats = p_.partial_stats + tile;
    const float4* all_parts = p_.partial_out + tile * kQuads;
#pragma unroll 1
    for (int first = thread_; first < pieces; first += kPieces * kThreads) {
      Piece joined[kPieces];
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
        for (int i = 0; i < kPieces; ++i) Add(stats[i], parts[i], &joined[i]);
      }
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        if (first + i * kThreads < pieces) Store(work, first + i * kThreads, joined[i]);
      }
    }
  }

  template <int kParts>
  __device__ void Add(const float2 (&stats)[kParts], const float4 (&parts)[kParts],
                      Piece* joined) const {
    const float scale_log2 = p_.softmax_scale * Exp::kLog2E;
    float largest = joined->largest;
#pragma unroll
    for (int s = 0; s < kParts; ++s) largest = fmaxf(largest, stats[s].x);
    // Nothing seen yet: all weights are 0.
    const float subtract = largest == -INFINITY ? 0.0f : __fmul_rn(largest, scale_log2);
    // Rounded as in the parts' own sums (softmax.cuh), not fused: exactly one for the largest.
    const float earlier = Exp2Approx(__fmul_rn(joined->largest, scale_log2) - subtract);
    float sum = joined->sum * earlier;
    float4 x = make_float4(joined->x.x * earlier, joined->x.y * earlier, joined->x.z * earlier,
                           joined->x.w * earlier);
#pragma unroll
    for (int s = 0; s < kParts; ++s) {
      const float weight = Exp2Approx(__fmul_rn(stats[s].x, scale_log2) - subtract);
      sum = fmaf(weight, stats[s].y, sum);
      x.x = fmaf(weight, parts[s].x, x.x);
      x.y = fmaf(weight, parts[s].y, x.y);
      x.z = fmaf(weight, parts[s].z, x.z);
      x.w = fmaf(weight, parts[s].w, x.w);
    }
    *joined = {largest, sum, x};
  }

  __device__ void Store(const WgmmaWork<kShape>& work, int piece, const Piece& joined) const {
    const float inverse = joined.sum > 0.0f ? 1.0f / joined.sum : 0.0f;
    const float4 x = joined.x;
    const int64_t at = work.IndexOf(p_, work.Row(piece / kQuads));
    auto* o = reinterpret_cast<uint2*>(static_cast<uint16_t*>(p_.o) + at * kShape.head_dim);
    o[piece % kQuads] = make_uint2(PackPair<kShape.bf16>(x.x * inverse, x.y * inverse),
                                   PackPair<kShape.bf16>(x.z * inverse, x.w * inverse));
    if (piece % kQuads == 0 && p_.lse != nullptr) {
      p_.lse[at] = joined.largest * p_.softmax_scale + logf(joined.sum);
    }
  }

  // Its CTAs are neighbours.
  __device__ int Tile() const { return static_cast<int>(blockIdx.x) / p_.splits; }
  __device__ static void Sync() { ptx::NamedBarrierSync(kJoinBarrier, kThreads); }

  const WgmmaDecodeParams& p_;
  const uint32_t smem_;
  const int thread_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_SPLIT_JOIN_CUH_
