// SPDX-License-Identifier: Apache-2.0
// The output of a tile on its way out: from registers where one warp holds a row's
// whole, through shared memory where several groups of warps, or several CTAs, hold
// a part of it.
//
// Parts combine as in flash-decoding: with M the largest of the parts' maxima m_i,
// O = sum(exp(m_i - M) O_i) / sum(exp(m_i - M) l_i). The order is fixed, so that the
// same inputs give the same bits.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_EPILOGUE_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_EPILOGUE_CUH_

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/common/atomic.cuh"
#include "kernels/sdpa/mma/fragment.cuh"
#include "kernels/sdpa/mma/kv8.h"
#include "kernels/sdpa/mma/schedule.cuh"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/mma/softmax.cuh"
#include "kernels/sdpa/shared/joined_piece.cuh"
#include "kernels/sdpa/shared/quad.cuh"

namespace warpledger::sdpa {

template <MmaShape kShape>
class MmaEpilogue {
 public:
  static constexpr int kRowBlocks = kShape.rows_per_warp / 16;
  using Softmax = MmaSoftmax<kShape>;
  using Exp = SoftmaxExp<kShape.exp, kShape.bf16>;
  using Output = float[kRowBlocks][kShape.head_dim / 8][4];

  __device__ MmaEpilogue(unsigned char* smem, const MmaParams& p, const MmaWork<kShape>& work,
                         int tile, int split)
      : smem_(smem), p_(p), work_(work), tile_(tile), split_(split) {}

  // `first_row` is the warp's in the tile. All consumer threads call it; the K/V
  // ring is no longer needed and no copy under way.
  __device__ void Store(const Output& out, const Softmax& softmax, int first_row, int group) const {
    if constexpr (HasPartialOutputs(kShape)) {
      StoreThroughShared(out, softmax, first_row, group);
    } else {
      StoreFromRegisters(out, softmax, first_row);
    }
  }

 private:
  static constexpr MmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kTileM = TileM(kShape);
  static constexpr int kPieces = kShape.head_dim / 8;  // of 8 columns
  static constexpr int kQuads = kShape.head_dim / 4;   // of 4 columns

  __device__ static float Lse(float scaled_max, float sum) {
    return scaled_max * Exp::ToNatural() + logf(sum);
  }
  __device__ static uint4 PackPiece(const float (&x)[8], float factor) {
    return make_uint4(PackPair<kShape.bf16>(x[0] * factor, x[1] * factor),
                      PackPair<kShape.bf16>(x[2] * factor, x[3] * factor),
                      PackPair<kShape.bf16>(x[4] * factor, x[5] * factor),
                      PackPair<kShape.bf16>(x[6] * factor, x[7] * factor));
  }
  // Row `row` of the tile in O, of which LSE has `global_row`.
  __device__ half* OutputRow(int row, int64_t global_row) const {
    if constexpr (kShape.strided) return work_.o + work_.Elements(p_, Strided(p_).o, row);
    return static_cast<half*>(p_.forward.o) + global_row * kShape.head_dim;
  }

  // A quad holds a row's columns in pieces of 16 bytes, a fourth of each piece per
  // lane; the lanes exchange them, so that each stores whole pieces.
  __device__ void StoreFromRegisters(const Output& out, const Softmax& softmax,
                                     int first_row) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first_row + b * 16 + r * 8 + lane / 4;
        const bool valid = row < work_.rows;
        const int64_t global_row = valid ? work_.GlobalRow(p_, row) : 0;
        const float sum = softmax.Sum(b, r);
        const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
        if constexpr (Is8Bit(kShape)) {
          if (valid) StoreInterleavedRow(out[b], r, inverse, OutputRow(row, global_row));
        } else {
#pragma unroll
          for (int first = 0; first < kPieces; first += 4) {
            uint32_t piece[4];  // this lane's fourth of four pieces
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              piece[i] = PackPair<kShape.bf16>(out[b][first + i][2 * r] * inverse,
                                               out[b][first + i][2 * r + 1] * inverse);
            }
            TransposeQuad(piece, lane % 4);
            if (valid) {
              reinterpret_cast<uint4*>(OutputRow(row, global_row))[first + lane % 4] =
                  make_uint4(piece[0], piece[1], piece[2], piece[3]);
            }
          }
        }
        if (valid && lane % 4 == 0 && p_.forward.lse != nullptr) {
          p_.forward.lse[global_row] = Lse(softmax.ScaledMax(b, r), sum);
        }
      }
    }
  }

  // Where V is 8-bit, a lane holds four neighbours of each 16 columns (OutputColumn): a quad
  // stores them as 32 bytes in a row.
  __device__ void StoreInterleavedRow(const float (&out)[kShape.head_dim / 8][4], int r,
                                      float factor, half* row) const {
    static_assert(OutputColumn(true, 0, 2) == 4 && OutputColumn(true, 1, 0) == 1 &&
                      OutputColumn(true, 0, 1) == 2 && OutputColumn(true, 1, 1) == 3,
                  "lane t holds columns 4t to 4t + 3");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < kPieces; n += 2) {
      *reinterpret_cast<uint2*>(row + n * 8 + lane % 4 * 4) =
          make_uint2(PackHalfPair(out[n][2 * r] * factor, out[n + 1][2 * r] * factor),
                     PackHalfPair(out[n][2 * r + 1] * factor, out[n + 1][2 * r + 1] * factor));
    }
  }

  // (key_groups, tile_m, head_dim) fp32 over Q, K and V, and the rows' statistics.
  __device__ float* Staged(int group, int row) const {
    return reinterpret_cast<float*>(smem_ + kSmem.staged) +
           (group * kTileM + row) * StagedRowFloats(kShape);
  }
  __device__ float2* Stats(int group, int row) const {
    return reinterpret_cast<float2*>(smem_ + kSmem.stats) + group * kTileM + row;
  }

  // The weight of a part whose maximum is `part_max` beside the largest.
  __device__ static float Weight(float part_max, float largest) {
    return part_max == -INFINITY ? 0.0f : Exp::Rescale(part_max - largest);
  }

  __device__ static auto WeightsBelow(float largest) {
    return [largest](float part_max) { return Weight(part_max, largest); };
  }

  __device__ void StoreThroughShared(const Output& out, const Softmax& softmax, int first_row,
                                     int group) const {
    const int lane = threadIdx.x % 32;
    __syncthreads();  // every warp has read its last tile: Q, K and V may go
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first_row + b * 16 + r * 8 + lane / 4;
        if (lane % 4 == 0) {
          *Stats(group, row) = make_float2(softmax.ScaledMax(b, r), softmax.Sum(b, r));
        }
        if constexpr (Is8Bit(kShape)) {
          float* staged = Staged(group, row) + lane % 4 * 4;
#pragma unroll
          for (int n = 0; n < kPieces; n += 2) {
            *reinterpret_cast<float4*>(staged + n * 8) =
                make_float4(out[b][n][2 * r], out[b][n + 1][2 * r], out[b][n][2 * r + 1],
                            out[b][n + 1][2 * r + 1]);
          }
        } else {
          float* staged = Staged(group, row) + lane % 4 * 2;
#pragma unroll
          for (int n = 0; n < kPieces; ++n) {
            *reinterpret_cast<float2*>(staged + n * 8) =
                make_float2(out[b][n][2 * r], out[b][n][2 * r + 1]);
          }
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kTileM * kPieces; i += ConsumerThreads(kShape)) {
      const int row = i / kPieces;
      if (row < work_.rows) CombineGroups(row, i % kPieces);
    }
    if constexpr (kShape.split_kv) {
      if (p_.splits > 1 && IsLastSplit()) CombineSplits();
    }
  }

  __device__ void StoreFinal(int row, int piece, const float (&x)[8], float largest,
                             float sum) const {
    const int64_t global_row = work_.GlobalRow(p_, row);
    reinterpret_cast<uint4*>(OutputRow(row, global_row))[piece] =
        PackPiece(x, sum > 0.0f ? 1.0f / sum : 0.0f);
    if (piece == 0 && p_.forward.lse != nullptr) p_.forward.lse[global_row] = Lse(largest, sum);
  }

  // One piece of one row of this CTA's output.
  __device__ void CombineGroups(int row, int piece) const {
    float largest = -INFINITY;
#pragma unroll
    for (int g = 0; g < kShape.key_groups; ++g) largest = fmaxf(largest, Stats(g, row)->x);
    float sum = 0.0f;
    float x[8] = {};
#pragma unroll
    for (int g = 0; g < kShape.key_groups; ++g) {
      const float weight = Weight(Stats(g, row)->x, largest);
      sum += weight * Stats(g, row)->y;
      const float4* part = reinterpret_cast<const float4*>(Staged(g, row) + piece * 8);
      AddWeighted(part[0], part[1], weight, x);
    }
    if (kShape.split_kv && p_.splits > 1) {
      const int64_t partial = PartialRow(split_, row);
      auto* to = reinterpret_cast<float4*>(p_.partial_out + partial * kShape.head_dim + piece * 8);
      to[0] = make_float4(x[0], x[1], x[2], x[3]);
      to[1] = make_float4(x[4], x[5], x[6], x[7]);
      if (piece == 0) {
        reinterpret_cast<float2*>(p_.partial_stats)[partial] = make_float2(largest, sum);
      }
    } else {
      StoreFinal(row, piece, x, largest, sum);
    }
  }

  __device__ static void AddWeighted(float4 a, float4 b, float weight, float (&x)[8]) {
    x[0] = fmaf(a.x, weight, x[0]);
    x[1] = fmaf(a.y, weight, x[1]);
    x[2] = fmaf(a.z, weight, x[2]);
    x[3] = fmaf(a.w, weight, x[3]);
    x[4] = fmaf(b.x, weight, x[4]);
    x[5] = fmaf(b.y, weight, x[5]);
    x[6] = fmaf(b.z, weight, x[6]);
    x[7] = fmaf(b.w, weight, x[7]);
  }

  __device__ int64_t PartialRow(int split, int row) const {
    return (int64_t{tile_} * p_.splits + split) * kTileM + row;
  }

  // The whole CTA calls it once its part is written: true in the CTA that comes last.
  __device__ bool IsLastSplit() const {
    int* last = reinterpret_cast<int*>(smem_ + kSmem.next_tile);
    __syncthreads();
    if (threadIdx.x == 0) {
      *last = ptx::AtomicIncrement(p_.arrivals + tile_) == p_.splits - 1;
      if (*last) p_.arrivals[tile_] = 0;
    }
    __syncthreads();
    return *last != 0;
  }

  // Quad `piece` of the tile's rows, of the parts `split` up to `end`. Loads are latency here:
  // those of kJoinedAtOnce parts stand side by side, and so do those of the last ones, if fewer.
  __device__ JoinedPiece JoinParts(int piece, int split, int end) const {
    const int64_t first = PartialRow(split, piece / kQuads);
    const auto* from_stats = reinterpret_cast<const float2*>(p_.partial_stats) + first;
    const auto* from =
        reinterpret_cast<const float4*>(p_.partial_out) + first * kQuads + piece % kQuads;
    JoinedPiece joined;
#pragma unroll 1
    for (int left = end - split; left > 0; left -= kJoinedAtOnce) {
      float2 stats[kJoinedAtOnce];
      float4 parts[kJoinedAtOnce];
#pragma unroll
      for (int s = 0; s < kJoinedAtOnce; ++s) {
        stats[s] = make_float2(-INFINITY, 0.0f);
        parts[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (s >= left) continue;
        stats[s] = __ldcg(from_stats + s * kTileM);
        parts[s] = __ldcg(from + s * (kTileM * kQuads));
      }
      joined.Add(stats, parts, WeightsBelow);
      from_stats += kJoinedAtOnce * kTileM;
      from += kJoinedAtOnce * (kTileM * kQuads);
    }
    return joined;
  }

  // The whole CTA. Where threads are many, groups of them share a quad's parts.
  __device__ void CombineSplits() const {
    constexpr int kThreads = ConsumerThreads(kShape);
    const int thread = static_cast<int>(threadIdx.x);
    const int pieces = work_.rows * kQuads;
    const int groups = kThreads / pieces;
    if (groups < 2) {
      for (int piece = thread; piece < pieces; piece += kThreads) {
        StoreJoined(piece, JoinParts(piece, 0, p_.splits));
      }
      return;
    }
    constexpr int kMostGroups = kThreads / kQuads;
    // (threads) each, over what was staged
    auto* x_of = reinterpret_cast<float4*>(smem_ + kSmem.staged);
    auto* stats_of = reinterpret_cast<float2*>(x_of + kThreads);
    static_assert(kThreads * (sizeof(float4) + sizeof(float2)) <=
                  kShape.key_groups * kTileM * StagedRowFloats(kShape) * sizeof(float));
    const int group = thread / pieces;
    JoinedPiece joined;
    if (group < groups) {
      joined =
          JoinParts(thread % pieces, group * p_.splits / groups, (group + 1) * p_.splits / groups);
    }
    x_of[thread] = joined.x;
    stats_of[thread] = make_float2(joined.largest, joined.sum);
    __syncthreads();
    if (group > 0) return;
    float2 stats[kMostGroups];
    float4 parts[kMostGroups];
#pragma unroll
    for (int g = 0; g < kMostGroups; ++g) {
      const bool is_one = g < groups;
      stats[g] = is_one ? stats_of[g * pieces + thread] : make_float2(-INFINITY, 0.0f);
      parts[g] = is_one ? x_of[g * pieces + thread] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    joined = {};
    joined.Add(stats, parts, WeightsBelow);
    StoreJoined(thread, joined);
  }

  __device__ void StoreJoined(int piece, const JoinedPiece& joined) const {
    const int row = piece / kQuads;
    const int64_t global_row = work_.GlobalRow(p_, row);
    const float inverse = joined.sum > 0.0f ? 1.0f / joined.sum : 0.0f;
    reinterpret_cast<uint2*>(OutputRow(row, global_row))[piece % kQuads] =
        make_uint2(PackPair<kShape.bf16>(joined.x.x * inverse, joined.x.y * inverse),
                   PackPair<kShape.bf16>(joined.x.z * inverse, joined.x.w * inverse));
    if (piece % kQuads == 0 && p_.forward.lse != nullptr) {
      p_.forward.lse[global_row] = Lse(joined.largest, joined.sum);
    }
  }

  unsigned char* const smem_;
  const MmaParams& p_;
  const MmaWork<kShape>& work_;
  const int tile_;
  const int split_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_EPILOGUE_CUH_
