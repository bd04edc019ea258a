// SPDX-License-Identifier: Apache-2.0
// O += P V on the FP32 pipes, and its epilogue.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_OUTPUT_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_OUTPUT_CUH_

#include <cuda_fp16.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/epilogue.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/simt/vector.cuh"
#include "kernels/sdpa/smem/smem_layout.h"
#include "kernels/sdpa/smem/softmax.cuh"

namespace warpledger::sdpa::smem {

// The CTA's output tile, (tile_m, head_dim) fp32 in registers: a thread owns
// kVec neighbouring columns of every `kRowStep`-th row, and with fewer threads than
// columns every `kColumnThreads`-th column.
template <Config kConfig>
class OutputSimt {
 public:
  // Rescales what is there and adds P V of one tile.
  __device__ void Accumulate(const SoftmaxState<kConfig>& s, const KvTile& kv, int seq_kv) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float rescale = s.rescale[Row(r)];
#pragma unroll
      for (int i = 0; i < kOwned; ++i) acc_[r][i] *= rescale;
    }
    const float* probs = s.scores;
    const half* v = kv.v + Column();
    if constexpr (kVec == 1) {
      // Staged tiles are zero-filled past seq_kv; global memory ends there.
      const int keys =
          kConfig.kv_tiling ? TileN(kConfig) : min(TileN(kConfig), seq_kv - kv.first_key);
#pragma unroll 8
      for (int key = 0; key < keys; ++key) {
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
          const float value = __half2float(v[key * kv.ld + i * kColumnThreads]);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            acc_[r][i] = fmaf(probs[Row(r) * kSmem.ld_scores + key], value, acc_[r][i]);
          }
        }
      }
    } else {
      constexpr int kKeys = 4;  // probabilities in 16 bytes
#pragma unroll 2
      for (int key = 0; key < TileN(kConfig); key += kKeys) {
        float p[kRows][kKeys];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float4 four =
              *reinterpret_cast<const float4*>(probs + Row(r) * kSmem.ld_scores + key);
          p[r][0] = four.x;
          p[r][1] = four.y;
          p[r][2] = four.z;
          p[r][3] = four.w;
        }
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
          float values[kVec];
          LoadVector<kVec>(values, kConfig.xor_swizzle ? kv.v + TilePlace<kConfig, TileN(kConfig)>(
                                                                    key + j, Column())
                                                       : v + (key + j) * kv.ld);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int i = 0; i < kVec; ++i) acc_[r][i] = fmaf(p[r][j], values[i], acc_[r][i]);
          }
        }
      }
    }
  }

  // Normalises and writes O. The state is final; no barrier inside.
  __device__ void Store(const SoftmaxState<kConfig>& s, const Work& work) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = Row(r);
      if (row >= work.rows) continue;
      const float scale = InverseSum(s.row_sum[row]);
#pragma unroll
      for (int step = 0; step < kColumnSteps; ++step) {
        float out[kVec];
#pragma unroll
        for (int i = 0; i < kVec; ++i) out[i] = acc_[r][step * kVec + i] * scale;
        StoreVector<kVec>(work.o + row * kConfig.head_dim + Column() + step * kColumnThreads, out);
      }
    }
  }

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  static constexpr int kVec = SimtVector<kConfig>();
  static constexpr int kColumnThreads = kConfig.head_dim / kVec < ComputeThreads(kConfig)
                                            ? kConfig.head_dim / kVec
                                            : ComputeThreads(kConfig);
  static constexpr int kColumnSteps = kConfig.head_dim / kVec / kColumnThreads;
  static constexpr int kOwned = kVec * kColumnSteps;  // of each row
  static_assert(kVec == 1 || kColumnSteps == 1, "single columns alone are dealt in turns");
  static_assert(kOwned * kColumnThreads == kConfig.head_dim,
                "every thread owns the same number of columns");
  static constexpr int kRowStep = ComputeThreads(kConfig) / kColumnThreads;
  static constexpr int kRows = TileM(kConfig) / kRowStep;
  static_assert(kRowStep * kRows == TileM(kConfig), "every thread owns the same number of rows");

  __device__ static int Column() { return threadIdx.x % kColumnThreads * kVec; }
  __device__ static int Row(int r) { return threadIdx.x / kColumnThreads + r * kRowStep; }

  float acc_[kRows][kOwned] = {};
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SIMT_OUTPUT_CUH_
