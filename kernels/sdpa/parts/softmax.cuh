// Online softmax over one score tile in shared memory (Milakov and Gimelshein,
// arXiv 1805.02867): running maximum and sum per row, and the factor by which
// what was accumulated so far must be rescaled.

#ifndef WARPLEDGER_KERNELS_SDPA_PARTS_SOFTMAX_CUH_
#define WARPLEDGER_KERNELS_SDPA_PARTS_SOFTMAX_CUH_

#include <cuda_fp16.h>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/parts/schedule.cuh"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

inline constexpr unsigned kFullWarp = 0xffffffffu;

__device__ inline float NegativeInfinity() { return __int_as_float(0xff800000); }

// The softmax state of a CTA in shared memory.
template <Config kConfig>
struct SoftmaxState {
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);

  float* scores;   // (tile_m, tile_n) fp32
  half* probs;     // (tile_m, tile_n) fp16, only with wmma_pv
  float* rescale;  // (tile_m, ld_rescale) fp32, one factor per row
  float* row_max;  // (tile_m) fp32, of scaled scores
  float* row_sum;  // (tile_m) fp32

  __device__ explicit SoftmaxState(unsigned char* smem)
      : scores(reinterpret_cast<float*>(smem + kSmem.scores)),
        probs(reinterpret_cast<half*>(smem + kSmem.probs)),
        rescale(reinterpret_cast<float*>(smem + kSmem.rescale)),
        row_max(reinterpret_cast<float*>(smem + kSmem.row_max)),
        row_sum(reinterpret_cast<float*>(smem + kSmem.row_sum)) {}

  // Before the first tile; the pipeline's barrier publishes it.
  __device__ void Reset() {
    for (int row = threadIdx.x; row < TileM(kConfig); row += Threads(kConfig)) {
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
    const float p = col < visible ? expf(scores[col] * scale - subtract) : 0.0f;
    sum += p;
    s.StoreProb(row, col, p);
  }
  const float rescale = expf(old_max - subtract);
  s.row_max[row] = new_max;
  s.row_sum[row] = s.row_sum[row] * rescale + sum;
  for (int i = 0; i < kSmem.ld_rescale; ++i) s.rescale[row * kSmem.ld_rescale + i] = rescale;
}

// One warp per row, a butterfly of shuffles for the maximum and for the sum. A
// warp works on all of its rows at once: the butterflies are chains of dependent
// shuffles, and only other rows can fill their latency. (Row after row, this was
// 1.02x over the serial form at mission_b on an H200.)
template <Config kConfig>
__device__ void SoftmaxTileShuffle(SoftmaxState<kConfig>& s, const Work& work, int first_key,
                                   float scale) {
  constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  constexpr int kPerLane = TileN(kConfig) / kWarpSize;
  constexpr int kRows = (TileM(kConfig) + Warps(kConfig) - 1) / Warps(kConfig);
  static_assert(kRows == 1 || kRows * Warps(kConfig) == TileM(kConfig));
  const int first_row = threadIdx.x / kWarpSize * kRows;
  const int lane = threadIdx.x % kWarpSize;
  if (first_row >= TileM(kConfig)) return;

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
      const float score = s.scores[row * kSmem.ld_scores + col] * scale;
      prob[r][i] = col < visible ? score : NegativeInfinity();
      new_max[r] = fmaxf(new_max[r], prob[r][i]);
    }
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      new_max[r] = fmaxf(new_max[r], __shfl_xor_sync(kFullWarp, new_max[r], mask));
    }
  }
  float sum[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float subtract = SafeMax(new_max[r]);
    sum[r] = 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      prob[r][i] = expf(prob[r][i] - subtract);
      sum[r] += prob[r][i];
    }
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] += __shfl_xor_sync(kFullWarp, sum[r], mask);
  }
  __syncwarp();  // every lane has read the old maxima
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    const float rescale = expf(old_max[r] - SafeMax(new_max[r]));
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) s.StoreProb(row, i * kWarpSize + lane, prob[r][i]);
    if (lane == 0) {
      s.row_max[row] = new_max[r];
      s.row_sum[row] = s.row_sum[row] * rescale + sum[r];
    }
    if (lane < kSmem.ld_rescale) s.rescale[row * kSmem.ld_rescale + lane] = rescale;
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

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PARTS_SOFTMAX_CUH_
