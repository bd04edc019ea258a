// SPDX-License-Identifier: Apache-2.0
// Online softmax over one score tile in shared memory (Milakov and Gimelshein,
// arXiv 1805.02867): running maximum and sum per row, and the factor by which
// what was accumulated so far must be rescaled.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SOFTMAX_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SOFTMAX_CUH_

#include <cuda_fp16.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/smem/schedule.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa::smem {

inline constexpr unsigned kFullWarp = 0xffffffffu;

__device__ inline float NegativeInfinity() { return __int_as_float(0xff800000); }

// The softmax state of a CTA in shared memory.
template <Config kConfig>
struct SoftmaxState {
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);

  float* scores;       // (tile_m, tile_n) fp32
  half* probs;         // (tile_m, tile_n) fp16, only with wmma_pv
  float* rescale;      // (tile_m, ld_rescale) fp32, one factor per row
  float* row_max;      // (tile_m) fp32, of scaled scores
  float* row_sum;      // (tile_m) fp32
  float* partial_max;  // (parts, tile_m) fp32, with softmax_in_registers
  float* partial_sum;  // (parts, tile_m) fp32, with softmax_in_registers

  __device__ explicit SoftmaxState(unsigned char* smem)
      : scores(reinterpret_cast<float*>(smem + kSmem.scores)),
        probs(reinterpret_cast<half*>(smem + kSmem.probs)),
        rescale(reinterpret_cast<float*>(smem + kSmem.rescale)),
        row_max(reinterpret_cast<float*>(smem + kSmem.row_max)),
        row_sum(reinterpret_cast<float*>(smem + kSmem.row_sum)),
        partial_max(reinterpret_cast<float*>(smem + kSmem.partial_max)),
        partial_sum(reinterpret_cast<float*>(smem + kSmem.partial_sum)) {}

  // Before the first tile; the pipeline's barrier publishes it.
  __device__ void Reset() {
    for (int row = threadIdx.x; row < TileM(kConfig); row += ComputeThreads(kConfig)) {
      row_max[row] = NegativeInfinity();
      row_sum[row] = 0.0f;
    }
  }

  // P replaces S in place, or goes to its own fp16 tile for the tensor cores.
  __device__ void StoreProb(int row, int col, float p) {
    if constexpr (kConfig.wmma_pv) {
      probs[row * kSmem.ld_probs + col] = __float2half_rn(p);
    } else {
      scores[row * kSmem.ld_scores + col] = p;
    }
  }
};

// The maximum to subtract: where a row has seen no key yet it is -inf, and
// subtracting that would make NaN of exp(-inf - -inf).
__device__ inline float SafeMax(float row_max) {
  return row_max == NegativeInfinity() ? 0.0f : row_max;
}

// How a configuration takes its exponentials. Scaled scores, maxima and factors are
// in the units that SoftmaxExp::Scale brings them to.
template <Config kConfig>
struct RowExp {
  static constexpr ExpMethod kMethod = static_cast<ExpMethod>(kConfig.exp_method);
  using Exp = SoftmaxExp<kMethod>;

  __device__ static float Scale(float softmax_scale) { return Exp::Scale(softmax_scale); }
  __device__ static float Of(float x, int index) { return Exp::Of(x, index); }
  // The factor between two maxima.
  __device__ static float Rescale(float x) {
    return kMethod == ExpMethod::kExpf ? expf(x) : Exp::Rescale(x);
  }
  // Two at once, in place, where the method has an instruction for that.
  __device__ static void Pair(float& x0, float& x1, int index) {
    if constexpr (kMethod == ExpMethod::kExpHalfPairs) {
      const uint32_t pair = Exp2HalfPair(PackHalfPair(x0, x1));
      const float2 wide = __half22float2(*reinterpret_cast<const half2*>(&pair));
      x0 = wide.x;
      x1 = wide.y;
    } else {
      x0 = Exp::Of(x0, index);
      x1 = Exp::Of(x1, index + 1);
    }
  }
  // A row's log-sum-exp in natural-log units.
  __device__ static float LogSumExp(float max, float sum) {
    return InLog2Units(kMethod) ? max * Exp::ToNatural() + logf(sum) : max + logf(sum);
  }
};

// One thread per row walks the tile twice.
template <Config kConfig>
__device__ void SoftmaxTileSerial(SoftmaxState<kConfig>& s, const Work& work, int first_key,
                                  float scale) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  const int row = threadIdx.x;
  if (row >= TileM(kConfig)) return;
  const int visible = work.VisibleKeys(row) - first_key;
  const float* scores = s.scores + row * kSmem.ld_scores;

  const float old_max = s.row_max[row];
  float new_max = old_max;
  for (int col = 0; col < TileN(kConfig); ++col) {
    if (col < visible) new_max = fmaxf(new_max, scores[col] * scale);
  }
  const float subtract = SafeMax(new_max);
  float sum = 0.0f;
  for (int col = 0; col < TileN(kConfig); ++col) {
    const float p = col < visible ? RowExp<kConfig>::Of(scores[col] * scale - subtract, col) : 0.0f;
    sum += p;
    s.StoreProb(row, col, p);
  }
  const float rescale = RowExp<kConfig>::Rescale(old_max - subtract);
  s.row_max[row] = new_max;
  s.row_sum[row] = s.row_sum[row] * rescale + sum;
  for (int i = 0; i < kSmem.ld_rescale; ++i) s.rescale[row * kSmem.ld_rescale + i] = rescale;
}

// One warp per row, a butterfly of shuffles for the maximum and for the sum. A
// warp works on all of its rows at once: the butterflies are chains of dependent
// shuffles, and only other rows can fill their latency. (Row after row, this was
// 1.02x over the serial form at mission_b on an H200.)
//
// With softmax_in_registers the maxima of the tile were taken on fragments before,
// and the sums will be after (wmma/): no butterflies here.
template <Config kConfig, int kRows>
__device__ void SoftmaxRowsShuffle(SoftmaxState<kConfig>& s, const Work& work, int first_row,
                                   int first_key, float scale) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr bool kButterflies = kConfig.softmax_in_registers == 0;
  constexpr int kPerLane = (TileN(kConfig) + kWarpSize - 1) / kWarpSize;
  // Of a tile of 16 keys half of the lanes hold none.
  constexpr bool kAllLanes = TileN(kConfig) >= kWarpSize;
  const int lane = threadIdx.x % kWarpSize;

  float prob[kRows][kPerLane];  // scores first
  float old_max[kRows];
  float new_max[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    const int visible = work.VisibleKeys(row) - first_key;
    old_max[r] = s.row_max[row];
    new_max[r] = old_max[r];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int col = i * kWarpSize + lane;
      float score = NegativeInfinity();
      if (kAllLanes || col < TileN(kConfig)) {
        score = s.scores[row * kSmem.ld_scores + col] * scale;
      }
      prob[r][i] = col < visible ? score : NegativeInfinity();
      if constexpr (kButterflies) new_max[r] = fmaxf(new_max[r], prob[r][i]);
    }
    if constexpr (!kButterflies) {
#pragma unroll
      for (int part = 0; part < kSmem.parts; ++part) {
        new_max[r] = fmaxf(new_max[r], s.partial_max[part * TileM(kConfig) + row]);
      }
    }
  }
  if constexpr (kButterflies) {
#pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        new_max[r] = fmaxf(new_max[r], __shfl_xor_sync(kFullWarp, new_max[r], mask));
      }
    }
  }
  float sum[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float subtract = SafeMax(new_max[r]);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) prob[r][i] -= subtract;
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if constexpr (kRows % 2 == 0) {
#pragma unroll
      for (int r = 0; r < kRows; r += 2) {
        RowExp<kConfig>::Pair(prob[r][i], prob[r + 1][i], i * kRows + r);
      }
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r) prob[r][i] = RowExp<kConfig>::Of(prob[r][i], i * kRows + r);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sum[r] = 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sum[r] += prob[r][i];
  }
  if constexpr (kButterflies) {
#pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] += __shfl_xor_sync(kFullWarp, sum[r], mask);
    }
  }
  __syncwarp();  // every lane has read the old maxima, and the scores that P may overwrite
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    const float rescale = RowExp<kConfig>::Rescale(old_max[r] - SafeMax(new_max[r]));
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (kAllLanes || lane < TileN(kConfig)) s.StoreProb(row, i * kWarpSize + lane, prob[r][i]);
    }
    if (lane == 0) {
      s.row_max[row] = new_max[r];
      if constexpr (kButterflies) s.row_sum[row] = s.row_sum[row] * rescale + sum[r];
    }
    if (lane < kSmem.ld_rescale) s.rescale[row * kSmem.ld_rescale + lane] = rescale;
  }
}

// A warp's rows of the tile, up to eight at once: sixteen spilled registers.
template <Config kConfig>
__device__ void SoftmaxTileShuffle(SoftmaxState<kConfig>& s, const Work& work, int first_key,
                                   float scale) {
  constexpr int kRows = (TileM(kConfig) + Warps(kConfig) - 1) / Warps(kConfig);
  static_assert(kRows == 1 || kRows * Warps(kConfig) == TileM(kConfig));
  constexpr int kAtOnce = kRows < 8 ? kRows : 8;
  static_assert(kRows % kAtOnce == 0);
  const int first_row = threadIdx.x / kWarpSize * kRows;
  if (first_row >= TileM(kConfig)) return;
#pragma unroll
  for (int r = 0; r < kRows; r += kAtOnce) {
    SoftmaxRowsShuffle<kConfig, kAtOnce>(s, work, first_row + r, first_key, scale);
  }
}

// Turns the raw scores of one tile into probabilities and updates the rows'
// state. All threads call it; the caller synchronises before and after.
//   first_key: index of the tile's first key; scale: multiplies the scores
template <Config kConfig>
__device__ void SoftmaxTile(SoftmaxState<kConfig>& s, const Work& work, int first_key,
                            float scale) {
  if constexpr (kConfig.warp_shuffle) {
    SoftmaxTileShuffle<kConfig>(s, work, first_key, scale);
  } else {
    SoftmaxTileSerial<kConfig>(s, work, first_key, scale);
  }
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SOFTMAX_CUH_
