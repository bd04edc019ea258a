// SPDX-License-Identifier: Apache-2.0
// Attention over one query tile with S in registers (softmax_in_registers 2 and 3).
//
// The warps of a CTA stand in a grid: each owns 16 query rows, and `kParts` of them
// share those rows, one for each part of a tile's keys.
//   level 2  the parts exchange their maxima through shared memory, so all subtract
//            the same; P goes through shared memory, and each warp computes a part of
//            the columns of O over all keys
//   level 3  each part is an attention of its own over its keys, with its own
//            maximum, sum and O; P turns into the A operand where it is. The parts are
//            combined once, when the last tile is done:
//              m = max m_p;  l = sum l_p exp(m_p - m);  O = sum O_p exp(m_p - m)
// A maximum over one's own part subtracted from shared sums, or shared O, is wrong by
// exp(m_p - m), a factor of its own for each part.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FUSED_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FUSED_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/barrier.cuh"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"
#include "kernels/sdpa/smem/softmax.cuh"
#include "kernels/sdpa/smem/wmma/fragment_layout.h"
#include "kernels/sdpa/smem/wmma/output.cuh"
#include "kernels/sdpa/smem/wmma/row_reduction.cuh"
#include "kernels/sdpa/smem/wmma/scores.cuh"

namespace warpledger::sdpa::smem {

template <Config kConfig>
class WmmaFused {
 public:
  __device__ WmmaFused() {
#pragma unroll
    for (auto& out : out_) nvcuda::wmma::fill_fragment(out, 0.0f);
  }

  // One tile. Computing threads all call it; at level 2 it synchronises twice, the
  // second time before P is read.
  __device__ void Step(const SoftmaxState<kConfig>& s, const half* q, const KvTile& kv,
                       const Work& work, float scale) {
    ScoreFragment scores[kKeyBlocks];
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
      scores[b] = ScoreBlock<kConfig>(q, kv, Row(), Key(b));
    }
    const int lane = threadIdx.x % kWarpSize;
    float new_max[kRowsOfLane];
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      new_max[r] = max_[r];
      const int visible = work.VisibleKeys(Row() + FirstRowOfLane(lane) + 8 * r) - kv.first_key;
#pragma unroll
      for (int b = 0; b < kKeyBlocks; ++b) {
#pragma unroll
        for (int i = 0; i < kAccumulatorElements; ++i) {
          if (AccumulatorRowOfLane(i) != r) continue;
          const int key = Key(b) + AccumulatorPlace(lane, i).col;
          float& score = scores[b].x[i];
          score = key < visible ? score * scale : NegativeInfinity();
          new_max[r] = fmaxf(new_max[r], score);
        }
      }
      new_max[r] = QuadMax(new_max[r]);
    }
    if constexpr (!kWhole && kParts > 1) ShareMaxima(s, new_max);

    float rescale[kRowsOfLane];
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      const float subtract = SafeMax(new_max[r]);
      rescale[r] = Exp::Rescale(max_[r] - subtract);
      max_[r] = new_max[r];
      sum_[r] *= rescale[r];
#pragma unroll
      for (int b = 0; b < kKeyBlocks; ++b) {
#pragma unroll
        for (int i = 0; i < kAccumulatorElements; i += 2) {  // neighbours in a row
          if (AccumulatorRowOfLane(i) != r) continue;
          float& p0 = scores[b].x[i];
          float& p1 = scores[b].x[i + 1];
          p0 -= subtract;
          p1 -= subtract;
          Exp::Pair(p0, p1, b * kAccumulatorElements + i);
          sum_[r] += p0 + p1;
        }
      }
    }
#pragma unroll
    for (auto& out : out_) {
#pragma unroll
      for (int i = 0; i < kAccumulatorElements; ++i) out.x[i] *= rescale[AccumulatorRowOfLane(i)];
    }
    if constexpr (kWhole) {
      AccumulateInPlace(scores, kv);
    } else {
      AccumulateThroughShared(s, scores, kv);
    }
  }

  // Combines the parts, leaves the rows' maxima and sums in shared memory and writes
  // O. Computing threads all call it; it synchronises.
  __device__ void Store(unsigned char* smem, const SoftmaxState<kConfig>& s, const Work& work) {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) sum_[r] = QuadSum(sum_[r]);
    if (lane % kLanesOfRow == 0) {
#pragma unroll
      for (int r = 0; r < kRowsOfLane; ++r) {
        const int place = Part() * TileM(kConfig) + Row() + FirstRowOfLane(lane) + 8 * r;
        s.partial_max[place] = max_[r];
        s.partial_sum[place] = sum_[r];
      }
    }
    if constexpr (kConfig.cp_async_stages > 0) ptx::CpAsyncWait<0>();
    ComputeBarrier<kConfig>();  // no warp reads K or V any more, no copy is in flight
    float scale[kRowsOfLane];
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      const int row = Row() + FirstRowOfLane(lane) + 8 * r;
      float max = NegativeInfinity();
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        max = fmaxf(max, s.partial_max[p * TileM(kConfig) + row]);
      }
      float sum = 0.0f;
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        const int place = p * TileM(kConfig) + row;
        sum += s.partial_sum[place] * Exp::Rescale(s.partial_max[place] - SafeMax(max));
      }
      scale[r] = Exp::Rescale(max_[r] - SafeMax(max));
      if (Part() == 0 && lane % kLanesOfRow == 0) {
        s.row_max[row] = max;
        s.row_sum[row] = sum;
      }
    }
    float* out = reinterpret_cast<float*>(smem + kSmem.out);
    if constexpr (kWhole) {
      AddParts(out, scale);
    } else {
      StoreFragments(out);
      ComputeBarrier<kConfig>();
    }
    WriteStagedOutput<kConfig>(out, s.row_sum, work);
  }

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  static constexpr bool kWhole = kConfig.softmax_in_registers == 3;
  static constexpr int kParts = kSmem.parts;
  static constexpr int kKeyBlocks = TileN(kConfig) / kWmma / kParts;
  static constexpr int kColumnBlocks = kConfig.head_dim / kWmma;
  static constexpr int kOutBlocks = kWhole ? kColumnBlocks : kColumnBlocks / kParts;
  static_assert(kKeyBlocks > 0 && kKeyBlocks * kParts * kWmma == TileN(kConfig),
                "every warp owns the same number of blocks of keys");
  static_assert(kOutBlocks > 0 && kOutBlocks * (kWhole ? 1 : kParts) == kColumnBlocks,
                "every warp owns the same number of column blocks");

  using Exp = RowExp<kConfig>;
  using Accumulator = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmma, kWmma, kWmma, float>;
  using MatrixA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kWmma, kWmma, kWmma, half,
                                         nvcuda::wmma::row_major>;
  using MatrixV = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kWmma, kWmma, kWmma, half,
                                         nvcuda::wmma::row_major>;

  __device__ static int Part() { return threadIdx.x / kWarpSize % kParts; }
  __device__ static int Row() { return threadIdx.x / kWarpSize / kParts * kWmma; }
  __device__ static int Key(int b) { return (Part() * kKeyBlocks + b) * kWmma; }
  __device__ static int Column(int b) { return ((kWhole ? 0 : Part() * kOutBlocks) + b) * kWmma; }

  // Raises each maximum to that of all parts.
  __device__ static void ShareMaxima(const SoftmaxState<kConfig>& s, float (&max)[kRowsOfLane]) {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      const int row = Row() + FirstRowOfLane(lane) + 8 * r;
      if (lane % kLanesOfRow == 0) s.partial_max[Part() * TileM(kConfig) + row] = max[r];
    }
    ComputeBarrier<kConfig>();
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      const int row = Row() + FirstRowOfLane(lane) + 8 * r;
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        max[r] = fmaxf(max[r], s.partial_max[p * TileM(kConfig) + row]);
      }
    }
  }

  __device__ void MultiplyV(const MatrixA& p, const KvTile& kv, int key) {
#pragma unroll
    for (int b = 0; b < kOutBlocks; ++b) {
      MatrixV v;
      nvcuda::wmma::load_matrix_sync(v, kv.v + TilePlace<kConfig, TileN(kConfig)>(key, Column(b)),
                                     kSmem.ld_tile);
      nvcuda::wmma::mma_sync(out_[b], p, v, out_[b]);
    }
  }

  // O += P V over the warp's own keys, P from the accumulators that it is in.
  __device__ void AccumulateInPlace(const ScoreFragment (&probs)[kKeyBlocks], const KvTile& kv) {
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
      MatrixA p;
#pragma unroll
      for (int i = 0; i < kMatrixAElements; ++i) {
        p.x[i] = __float2half_rn(probs[b].x[AccumulatorElementOfMatrixA(i)]);
      }
      MultiplyV(p, kv, Key(b));
    }
  }

  // O += P V over all keys of the tile, P by way of shared memory.
  __device__ void AccumulateThroughShared(const SoftmaxState<kConfig>& s,
                                          const ScoreFragment (&probs)[kKeyBlocks],
                                          const KvTile& kv) {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
#pragma unroll
      for (int i = 0; i < kAccumulatorElements; i += 2) {  // neighbours in a row
        const FragmentPlace place = AccumulatorPlace(lane, i);
        *reinterpret_cast<half2*>(s.probs + (Row() + place.row) * kSmem.ld_probs + Key(b) +
                                  place.col) = __floats2half2_rn(probs[b].x[i], probs[b].x[i + 1]);
      }
    }
    if constexpr (kParts > 1) {
      ComputeBarrier<kConfig>();
    } else {
      __syncwarp();  // the rows are the warp's own
    }
#pragma unroll
    for (int key = 0; key < TileN(kConfig); key += kWmma) {
      MatrixA p;
      nvcuda::wmma::load_matrix_sync(p, s.probs + Row() * kSmem.ld_probs + key, kSmem.ld_probs);
      MultiplyV(p, kv, key);
    }
    if constexpr (kParts == 1) __syncwarp();  // before the next tile's P
  }

  __device__ void StoreFragments(float* out) const {
#pragma unroll
    for (int b = 0; b < kOutBlocks; ++b) {
      nvcuda::wmma::store_matrix_sync(out + Row() * kSmem.ld_out + Column(b), out_[b], kSmem.ld_out,
                                      nvcuda::wmma::mem_row_major);
    }
  }

  // Stages the sum of the parts' O, each scaled to the common maximum, part after
  // part. Ends in a barrier.
  __device__ void AddParts(float* out, const float (&scale)[kRowsOfLane]) {
#pragma unroll
    for (auto& block : out_) {
#pragma unroll
      for (int i = 0; i < kAccumulatorElements; ++i) block.x[i] *= scale[AccumulatorRowOfLane(i)];
    }
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      if (Part() == p) {
        if (p > 0) {
#pragma unroll
          for (int b = 0; b < kOutBlocks; ++b) {
            Accumulator before;
            nvcuda::wmma::load_matrix_sync(before, out + Row() * kSmem.ld_out + Column(b),
                                           kSmem.ld_out, nvcuda::wmma::mem_row_major);
#pragma unroll
            for (int i = 0; i < kAccumulatorElements; ++i) out_[b].x[i] += before.x[i];
          }
        }
        StoreFragments(out);
      }
      ComputeBarrier<kConfig>();
    }
  }

  Accumulator out_[kOutBlocks];
  float max_[kRowsOfLane] = {NegativeInfinity(), NegativeInfinity()};
  float sum_[kRowsOfLane] = {};
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_FUSED_CUH_
