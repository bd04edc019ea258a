// SPDX-License-Identifier: Apache-2.0
// The fused SDPA forward kernel of the mma family: mma.sync and ldmatrix, in the
// structure of FlashAttention-2 (arXiv 2307.08691).
//
// A warp owns 16 or 32 query rows; S, P and O stay in its registers, and warps meet
// only at the K/V tiles in shared memory:
//
//   for each K/V tile, last first:
//     S = Q K^T;  P, rescale = softmax update(S);  O = O * rescale + P V
//   O /= sum;  LSE = max + log(sum)
//
// K/V tiles go from the last to the first, so that masked tiles come first.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_FORWARD_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_FORWARD_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/cluster.cuh"
#include "kernels/sdpa/mma/epilogue.cuh"
#include "kernels/sdpa/mma/fragment.cuh"
#include "kernels/sdpa/mma/kv8.cuh"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/pipeline.cuh"
#include "kernels/sdpa/mma/projection/fused_projection.cuh"
#include "kernels/sdpa/mma/schedule.cuh"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/mma/softmax.cuh"

namespace warpledger::sdpa {

// One computing warp's part of one tile of queries.
template <MmaShape kShape>
class MmaWarp {
 public:
  __device__ MmaWarp(unsigned char* smem, const MmaParams& p)
      : smem_(smem),
        base_(MmaSharedAddress(smem)),
        p_(p),
        warp_(threadIdx.x / 32),
        group_(warp_ / kShape.row_warps),
        first_row_(warp_ % kShape.row_warps * kShape.rows_per_warp),
        widen_(base_ + kSmem.table) {}

  __device__ void Run(const MmaWork<kShape>& work, int tile, int split) {
    const MmaPipeline<kShape> pipeline(base_, p_, work, group_,
                                       threadIdx.x - group_ * kShape.row_warps * 32);
    MmaSoftmax<kShape> softmax(p_.forward.softmax_scale * CodeScale(work.k_scales));
    Accumulator out = {};
    if constexpr (kShape.softmax_overlap) {
      RunTilesAhead(pipeline, work, softmax, out);
    } else {
      RunTiles(pipeline, work, softmax, out);
    }
    pipeline.PassMissedBarriers();
    if constexpr (kShape.stages > 0) ptx::CpAsyncWait<0>();  // empty groups at most

    softmax.Finish();
    float wide[kRowBlocks][kOutBlocks][4];
    WidenBlocks<kOutBlocks>(out, wide);
    if constexpr (Is8Bit(kShape)) ScaleOutput(CodeScale(work.v_scales), wide);
    MmaEpilogue<kShape>(smem_, p_, work, tile, split).Store(wide, softmax, first_row_, group_);
  }

 private:
  static constexpr MmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kRowBlocks = kShape.rows_per_warp / 16;
  static constexpr int kKeyBlocks = kShape.tile_n / 8;
  static constexpr int kOutBlocks = kShape.head_dim / 8;
  static constexpr int kDepthSteps = kShape.head_dim / 16;
  static constexpr bool kHalfScores = (kShape.fp16_accumulators & kFp16Scores) != 0;
  static constexpr bool kHalfOutput = (kShape.fp16_accumulators & kFp16Output) != 0;
  using Scores = typename MmaSoftmax<kShape>::Scores;
  using Probs = typename MmaSoftmax<kShape>::Probs;
  using QueryFragments = uint32_t[kRowBlocks][kDepthSteps][4];
  using ScoreAccumulator =
      std::conditional_t<kHalfScores, uint32_t[kRowBlocks][kKeyBlocks][2], Scores>;
  using Accumulator = std::conditional_t<kHalfOutput, uint32_t[kRowBlocks][kOutBlocks][2],
                                         float[kRowBlocks][kOutBlocks][4]>;

  using Pipeline = MmaPipeline<kShape>;

  __device__ void RunTiles(const Pipeline& pipeline, const MmaWork<kShape>& work,
                           MmaSoftmax<kShape>& softmax, Accumulator& out) const {
    pipeline.Start();
    pipeline.WaitFirst();
    QueryFragments q;
    if constexpr (kShape.q_registers) LoadQueries(q);
#pragma unroll 1
    for (int i = 0; i < pipeline.tiles().count; ++i) {
      const int n = pipeline.tiles()[i];
      const int slot = pipeline.AcquireK(i);
      Scores scores;
      ComputeScores(q, pipeline.K(slot), scores);
      ApplyTileScales(work, n, softmax, scores);
      if (!kShape.border_mask || n >= work.whole_tiles) Mask(scores, work, n);
      float rescale[kRowBlocks][2];
      const bool rescales = softmax.UpdateMax(scores, rescale);
      Probs probs;
      softmax.Exponentials(scores, 0, kKeyBlocks, probs);
      if (rescales) Rescale(out, rescale);
      pipeline.AcquireV(i);
      AccumulateOutput(probs, pipeline.V(slot), out);
      pipeline.Release(i);
    }
  }

  // The same with the scores of the next tile among the exponentials of this one: the
  // tensor cores work while MUFU does.
  __device__ void RunTilesAhead(const Pipeline& pipeline, const MmaWork<kShape>& work,
                                MmaSoftmax<kShape>& softmax, Accumulator& out) const {
    static_assert(!kHalfScores, "scores stay in the accumulators");
    pipeline.StartAhead();
    pipeline.WaitFirstAhead();
    QueryFragments q;
    if constexpr (kShape.q_registers) LoadQueries(q);
    const int count = pipeline.tiles().count;
    if (count == 0) return;
    Scores scores;
    ComputeScores(q, pipeline.K(0), scores);
    int slot = 0;
#pragma unroll 1
    for (int i = 0; i < count - 1; ++i) {
      const int n = pipeline.tiles()[i];
      ApplyTileScales(work, n, softmax, scores);
      if (!kShape.border_mask || n >= work.whole_tiles) Mask(scores, work, n);
      pipeline.AcquireAhead(i);
      const int next_slot = slot + 1 == kShape.stages ? 0 : slot + 1;
      float rescale[kRowBlocks][2];
      if (softmax.UpdateMax(scores, rescale)) Rescale(out, rescale);
      Scores next = {};
      Probs probs;
#pragma unroll
      for (int d = 0; d < kDepthSteps; ++d) {
        AddScores(q, pipeline.K(next_slot), d, next);
        softmax.Exponentials(scores, d * kKeyBlocks / kDepthSteps,
                             (d + 1) * kKeyBlocks / kDepthSteps, probs);
      }
      AccumulateOutput(probs, pipeline.V(slot), out);
#pragma unroll
      for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
        for (int k = 0; k < kKeyBlocks; ++k) {
#pragma unroll
          for (int j = 0; j < 4; ++j) scores[b][k][j] = next[b][k][j];
        }
      }
      slot = next_slot;
    }
    const int n = pipeline.tiles()[count - 1];
    ApplyTileScales(work, n, softmax, scores);
    if (!kShape.border_mask || n >= work.whole_tiles) Mask(scores, work, n);
    pipeline.AcquireAhead(count - 1);
    float rescale[kRowBlocks][2];
    if (softmax.UpdateMax(scores, rescale)) Rescale(out, rescale);
    Probs probs;
    softmax.Exponentials(scores, 0, kKeyBlocks, probs);
    AccumulateOutput(probs, pipeline.V(slot), out);
  }

  __device__ void LoadQueryBlock(uint32_t (&a)[4], int block, int depth) const {
    if constexpr (Is8Bit(kShape)) {
      permuted_queries_.Load(a, base_ + kSmem.q, first_row_ + block * 16, depth);
    } else {
      LdMatrix(a, rows_first_.Block(base_ + kSmem.q, first_row_ + block * 16, depth));
    }
  }
  __device__ void LoadQueries(QueryFragments& q) const {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int d = 0; d < kDepthSteps; ++d) LoadQueryBlock(q[b][d], b, d);
    }
  }

  // S = Q K^T of one tile.
  __device__ void ComputeScores(const QueryFragments& q, uint32_t k_tile, Scores& scores) const {
    ScoreAccumulator sums = {};
#pragma unroll
    for (int d = 0; d < kDepthSteps; ++d) AddScores(q, k_tile, d, sums);
    WidenBlocks<kKeyBlocks>(sums, scores);
  }

  // Adds step d of head_dim to Q K^T.
  __device__ void AddScores(const QueryFragments& q, uint32_t k_tile, int d,
                            ScoreAccumulator& sums) const {
    uint32_t a[kRowBlocks][4];
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
      if constexpr (kShape.q_registers) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[b][i] = q[b][d][i];
      } else {
        LoadQueryBlock(a[b], b, d);
      }
    }
    if constexpr (Is8Bit(kShape)) {
      AddScoresOfCodes(a, k_tile, d, sums);
    } else {
#pragma unroll
      for (int n = 0; n < kKeyBlocks; n += 2) {
        uint32_t keys[4];
        LdMatrix(keys, columns_first_.Block(k_tile, n * 8, d));
#pragma unroll
        for (int b = 0; b < kRowBlocks; ++b) {
          Mma<kShape.bf16>(sums[b][n], a[b], keys[0], keys[1]);
          Mma<kShape.bf16>(sums[b][n + 1], a[b], keys[2], keys[3]);
        }
      }
    }
  }

  // The same of 8-bit keys, in units of their scale. Q's columns stand in QkColumn's order.
  __device__ void AddScoresOfCodes(const uint32_t (&a)[kRowBlocks][4], uint32_t k_tile, int d,
                                   ScoreAccumulator& sums) const {
#pragma unroll
    for (int n = 0; n < kKeyBlocks; n += kKeysPerByteLoad / 8) {
      uint32_t codes[4];
      LdMatrix(codes, byte_keys_.Block(k_tile, n * 8, d));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t b0, b1;
        widen_.Neighbours(codes[j], b0, b1);
#pragma unroll
        for (int b = 0; b < kRowBlocks; ++b) Mma<false>(sums[b][n + j], a[b], b0, b1);
      }
    }
  }

  // A head's largest scale, times what a code's fp16 stands for; 1 for 16-bit K and V.
  __device__ static float CodeScale(const float* scales) {
    if constexpr (Is8Bit(kShape)) {
      return __ldg(scales) * KvWiden<kShape.kv>::Unit();
    } else {
      return 1.0f;
    }
  }

  // With a scale per K/V tile: the scores in units of the head's scale, and the weight that
  // its values will need.
  __device__ static void ApplyTileScales(const MmaWork<kShape>& work, int n,
                                         MmaSoftmax<kShape>& softmax, Scores& scores) {
    if constexpr (kShape.kv_block_scale) {
      const float k_scale = __ldg(work.k_scales + 1 + n);
      softmax.SetTileWeight(__ldg(work.v_scales + 1 + n));
#pragma unroll
      for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
        for (int k = 0; k < kKeyBlocks; ++k) {
#pragma unroll
          for (int j = 0; j < 4; ++j) scores[b][k][j] *= k_scale;
        }
      }
    }
  }

  __device__ static void ScaleOutput(float scale, float (&out)[kRowBlocks][kOutBlocks][4]) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int n = 0; n < kOutBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[b][n][i] *= scale;
      }
    }
  }

  // Sets scores of keys that a row does not see to -infinity.
  __device__ void Mask(Scores& scores, const MmaWork<kShape>& work, int n) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first_row_ + b * 16 + r * 8 + lane / 4;
        const int visible = work.VisibleKeys(p_, row) - n * kShape.tile_n - lane % 4 * 2;
#pragma unroll
        for (int block = 0; block < kKeyBlocks; ++block) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            if (block * 8 + j >= visible) scores[b][block][2 * r + j] = -INFINITY;
          }
        }
      }
    }
  }

  __device__ static void Rescale(Accumulator& out, const float (&rescale)[kRowBlocks][2]) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int n = 0; n < kOutBlocks; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          if constexpr (kHalfOutput) {
            const half2 factor = __float2half2_rn(rescale[b][r]);
            half2 x = *reinterpret_cast<half2*>(&out[b][n][r]);
            x = __hmul2(x, factor);
            out[b][n][r] = *reinterpret_cast<uint32_t*>(&x);
          } else {
            out[b][n][2 * r] *= rescale[b][r];
            out[b][n][2 * r + 1] *= rescale[b][r];
          }
        }
      }
    }
  }

  // O += P V of one tile.
  __device__ void AccumulateOutput(const Probs& probs, uint32_t v_tile, Accumulator& out) const {
    if constexpr (!kShape.p_registers) StoreProbs(probs);
#pragma unroll
    for (int k = 0; k < kKeyBlocks / 2; ++k) {
      uint32_t a[kRowBlocks][4];
#pragma unroll
      for (int b = 0; b < kRowBlocks; ++b) {
        if constexpr (kShape.p_registers) {
          a[b][0] = probs[b][2 * k][0];
          a[b][1] = probs[b][2 * k][1];
          a[b][2] = probs[b][2 * k + 1][0];
          a[b][3] = probs[b][2 * k + 1][1];
        } else {
          LdMatrix(a[b], probs_first_.Block(ProbsTile(), b * 16, k));
        }
      }
      if constexpr (Is8Bit(kShape)) {
        AccumulateCodes(a, v_tile, k, out);
      } else {
#pragma unroll
        for (int d = 0; d < kOutBlocks; d += 2) {
          uint32_t values[4];
          if constexpr (kShape.v_transposed) {
            LdMatrixTransposed(values, rows_first_.Block(v_tile, k * 16, d / 2));
          } else {
            LoadTransposedPlain<kShape.layout, kShape.head_dim>(values, v_tile, k * 16, d / 2);
          }
#pragma unroll
          for (int b = 0; b < kRowBlocks; ++b) {
            Mma<kShape.bf16>(out[b][d], a[b], values[0], values[1]);
            Mma<kShape.bf16>(out[b][d + 1], a[b], values[2], values[3]);
          }
        }
      }
    }
  }

  // 16 keys of 8-bit V, in units of their scale; O's columns stand in OutputColumn's order.
  __device__ void AccumulateCodes(const uint32_t (&a)[kRowBlocks][4], uint32_t v_tile, int k,
                                  Accumulator& out) const {
#pragma unroll
    for (int d = 0; d < kOutBlocks; d += 4) {
      uint32_t codes[4];  // keys 0-7 and 8-15 of the first 16 columns, then of the next
      LdMatrixTransposed(codes, byte_values_.Block(v_tile, k * 16, d / 4));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t even[2], odd[2];
        widen_.Interleaved(codes[2 * half], even[0], odd[0]);
        widen_.Interleaved(codes[2 * half + 1], even[1], odd[1]);
#pragma unroll
        for (int b = 0; b < kRowBlocks; ++b) {
          Mma<false>(out[b][d + 2 * half], a[b], even[0], even[1]);
          Mma<false>(out[b][d + 2 * half + 1], a[b], odd[0], odd[1]);
        }
      }
    }
  }

  // The warp's own buffer of P, written by accumulator and read back by operand.
  __device__ uint32_t ProbsTile() const {
    return base_ + kSmem.p + warp_ * kShape.rows_per_warp * RowBytes(kShape.layout, kShape.tile_n);
  }
  __device__ void StoreProbs(const Probs& probs) const {
    const int lane = threadIdx.x % 32;
    __syncwarp();  // the reads of the tile before are done
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int n = 0; n < kKeyBlocks; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = b * 16 + r * 8 + lane / 4;
          StoreSharedPair(
              ProbsTile() + ChunkOffset(kShape.layout, kShape.tile_n, row, n) + lane % 4 * 4,
              probs[b][n][r]);
        }
      }
    }
    __syncwarp();
  }

  // --- Accumulators of either width ---
  template <int kBlocks>
  __device__ static void WidenBlocks(const uint32_t (&from)[kRowBlocks][kBlocks][2],
                                     float (&to)[kRowBlocks][kBlocks][4]) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float2 pair = __half22float2(*reinterpret_cast<const half2*>(&from[b][n][r]));
          to[b][n][2 * r] = pair.x;
          to[b][n][2 * r + 1] = pair.y;
        }
      }
    }
  }
  template <int kBlocks>
  __device__ static void WidenBlocks(const float (&from)[kRowBlocks][kBlocks][4],
                                     float (&to)[kRowBlocks][kBlocks][4]) {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[b][n][i] = from[b][n][i];
      }
    }
  }

  unsigned char* const smem_;
  const uint32_t base_;
  const MmaParams& p_;
  const int warp_;
  const int group_;
  const int first_row_;  // of the warp in the tile
  const FragmentAddress<kShape.layout, kShape.head_dim, true> rows_first_;
  const FragmentAddress<kShape.layout, kShape.head_dim, false> columns_first_;
  const FragmentAddress<kShape.layout, kShape.tile_n, true> probs_first_;
  // Of 8-bit K and V; unused members cost nothing.
  const PermutedQueryAddress<kShape.layout, kShape.head_dim> permuted_queries_;
  const ByteKeyAddress<kShape.layout, KvColumns(kShape)> byte_keys_;
  const FragmentAddress<kShape.layout, KvColumns(kShape), true> byte_values_;
  const KvWiden<kShape.kv> widen_;
};

// The kernel's body: CTAs of Threads(kShape) threads with MakeSmem(kShape).bytes of
// dynamic shared memory at `smem`, 128-byte aligned; one per tile and split or,
// persistent or for packed sequences, any number.
template <MmaShape kShape>
__device__ void MmaForward(const MmaParamsOf<kShape>& p, unsigned char* smem) {
  static_assert(*WhyIllegal(kShape) == '\0', "no such shape; see WhyIllegal");
  constexpr MmaSmem kSmem = MakeSmem(kShape);
  if constexpr (kShape.dependent_launch) {
    // The next kernel may come as soon as there is room: it waits, as this one does, for
    // the end of the one before, whose outputs and counters it may share.
    ptx::LaunchDependents();
    ptx::AwaitPriorKernel();
  }
  if constexpr (kShape.varlen) {
    const int tiles = *p.block_count * p.heads;
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles;
         tile += static_cast<int>(gridDim.x)) {
      const SequenceBlock& block = p.blocks[tile / p.heads];
      const MmaVarlenParams one = OfSequence<kShape>(p, block);
      const int in_sequence = tile - block.first_block * p.heads;
      MmaWarp<kShape>(smem, one).Run(DecodeMmaWork<kShape>(one, in_sequence, 0), in_sequence, 0);
      __syncthreads();  // every warp has read Q, K and V
    }
    return;
  }
  if constexpr (kShape.input == MmaInput::kClusterProjected) ProjectForCluster<kShape>(smem, p);
  MmaWarp<kShape> warp(smem, p);
  // The barrier after Q's copy publishes it.
  KvWiden<kShape.kv>::FillTable(MmaSharedAddress(smem) + kSmem.table, Threads(kShape));

  if constexpr (IsPersistent(kShape)) {
    int* next = reinterpret_cast<int*>(smem + kSmem.next_tile);
    int round = 0;
    for (int tile = blockIdx.x; tile < p.tiles;) {
      warp.Run(DecodeMmaWork<kShape>(p, tile, 0), tile, 0);
      if constexpr (kShape.persistent == MmaPersistent::kDynamic) {
        if (threadIdx.x == 0) {
          const int fetched = atomicAdd(p.next_tile, 1);
          // Every tile is fetched once, but for each CTA's first, and each CTA fetches
          // once in vain: the last fetch sets the counter back.
          if (fetched == p.tiles - 1) *p.next_tile = 0;
          *next = fetched + static_cast<int>(gridDim.x);
        }
        __syncthreads();  // also: every warp has read Q, K and V
        tile = *next;
        __syncthreads();
      } else {
        // Under the causal mask tiles of a round differ in length: every other round
        // runs backwards, or some CTA would get the longest of each.
        ++round;
        const int ctas = static_cast<int>(gridDim.x);
        const int cta = static_cast<int>(blockIdx.x);
        tile = round * ctas + (p.forward.causal && round % 2 == 1 ? ctas - 1 - cta : cta);
        if (tile >= p.tiles && round * ctas < p.tiles) {
          ++round;
          tile = round * ctas + cta;
        }
        __syncthreads();
      }
    }
  } else {
    const int tile = kShape.split_kv ? blockIdx.x / p.splits : blockIdx.x;
    const int split = kShape.split_kv ? blockIdx.x - tile * p.splits : 0;
    const MmaWork<kShape> work = DecodeMmaWork<kShape>(p, tile, split);
    if constexpr (kShape.producer_warps > 0) {
      const uint32_t base = MmaSharedAddress(smem);
      if (threadIdx.x == 0) MmaPipeline<kShape>::InitBarriers(base);
      __syncthreads();
      const int producer = static_cast<int>(threadIdx.x) - ConsumerThreads(kShape);
      if (producer >= 0) {
        MmaPipeline<kShape>(base, p, work, 0, 0).Produce(producer);
        return;
      }
    }
    if constexpr (kShape.bulk_copy) {
      if (threadIdx.x == 0) MmaPipeline<kShape>::InitBarriers(MmaSharedAddress(smem));
      __syncthreads();
    }
    warp.Run(work, tile, split);
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_FORWARD_CUH_
