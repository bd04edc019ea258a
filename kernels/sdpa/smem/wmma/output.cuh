// SPDX-License-Identifier: Apache-2.0
// O += P V on tensor cores through the WMMA API, and its epilogue.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_OUTPUT_CUH_
#define WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_OUTPUT_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/barrier.cuh"
#include "kernels/sdpa/smem/copy.cuh"
#include "kernels/sdpa/smem/epilogue.cuh"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/simt/vector.cuh"
#include "kernels/sdpa/smem/smem_layout.h"
#include "kernels/sdpa/smem/softmax.cuh"
#include "kernels/sdpa/smem/wmma/row_reduction.cuh"
#include "kernels/sdpa/smem/wmma/scores.cuh"

namespace warpledger::sdpa::smem {

// Normalises the output staged in shared memory and writes it. Computing threads all
// call it, behind a barrier; none inside.
//   out: (tile_m, head_dim) fp32, row stride ld_out
template <Config kConfig>
__device__ void WriteStagedOutput(const float* out, const float* row_sum, const Work& work) {
  constexpr int kLdOut = MakeSmemLayout(kConfig).ld_out;
  constexpr int kVec = SimtVector<kConfig>();
  constexpr int kChunks = kConfig.head_dim / kVec;
  for (int i = threadIdx.x; i < work.rows * kChunks; i += ComputeThreads(kConfig)) {
    const int row = i / kChunks;
    const int col = i % kChunks * kVec;
    const float scale = InverseSum(row_sum[row]);
    float values[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) values[j] = out[row * kLdOut + col + j] * scale;
    StoreVector<kVec>(work.o + row * kConfig.head_dim + col, values);
  }
}

// The CTA's output tile, (tile_m, head_dim) fp32 in accumulator fragments that
// live in registers over the whole K/V loop.
//
// Which row of the tile a fragment element belongs to is not specified by the
// API. Rescaling rows needs it, so the factors are loaded as a fragment of the
// same type from a tile in shared memory that repeats each row's factor over 16
// columns: equal types have equal layouts, and the product goes element by
// element.
template <Config kConfig>
class OutputWmma {
 public:
  __device__ OutputWmma() {
#pragma unroll
    for (auto& acc : acc_) nvcuda::wmma::fill_fragment(acc, 0.0f);
  }

  // Rescales what is there and adds P V of one tile.
  __device__ void Accumulate(const SoftmaxState<kConfig>& s, const KvTile& kv, int /*seq_kv*/) {
    namespace wmma = nvcuda::wmma;
    const int row = Row();
    Accumulator rescale;
    wmma::load_matrix_sync(rescale, s.rescale + row * kSmem.ld_rescale, kSmem.ld_rescale,
                           wmma::mem_row_major);
#pragma unroll
    for (auto& acc : acc_) {
#pragma unroll
      for (int i = 0; i < acc.num_elements; ++i) acc.x[i] *= rescale.x[i];
    }
    float sum[kRowsOfLane] = {};
#pragma unroll
    for (int key = 0; key < TileN(kConfig); key += kWmma) {
      wmma::fragment<wmma::matrix_a, kWmma, kWmma, kWmma, half, wmma::row_major> p;
      wmma::load_matrix_sync(p, s.probs + row * kSmem.ld_probs + key, kSmem.ld_probs);
      if constexpr (kConfig.softmax_in_registers == 1) AddRows(sum, p);
#pragma unroll
      for (int b = 0; b < kBlocksPerWarp; ++b) {
        wmma::fragment<wmma::matrix_b, kWmma, kWmma, kWmma, half, wmma::row_major> v;
        wmma::load_matrix_sync(v, kv.v + TilePlace<kConfig, TileN(kConfig)>(key, Column(b)),
                               kSmem.ld_tile);
        wmma::mma_sync(acc_[b], p, v, acc_[b]);
      }
    }
    if constexpr (kConfig.softmax_in_registers == 1) AddToRowSums(s, sum);
  }

  // Stages O in shared memory over K and V, normalises it and writes it. All
  // computing threads call it; it synchronises.
  __device__ void Store(unsigned char* smem, const SoftmaxState<kConfig>& s, const Work& work) {
    float* out = reinterpret_cast<float*>(smem + kSmem.out);
    if constexpr (kConfig.cp_async_stages > 0) ptx::CpAsyncWait<0>();
    ComputeBarrier<kConfig>();  // no warp reads K or V any more, no copy is in flight
#pragma unroll
    for (int b = 0; b < kBlocksPerWarp; ++b) {
      nvcuda::wmma::store_matrix_sync(out + Row() * kSmem.ld_out + Column(b), acc_[b], kSmem.ld_out,
                                      nvcuda::wmma::mem_row_major);
    }
    ComputeBarrier<kConfig>();
    WriteStagedOutput<kConfig>(out, s.row_sum, work);
  }

 private:
  static constexpr SmemLayout kSmem = MakeSmemLayout(kConfig);
  static_assert(
      OutputFitsBelowScores(kSmem, TileM(kConfig)),
      "the staged output reaches the scores, and the row sums behind them are still read");
  static constexpr int kColumnBlocks = kConfig.head_dim / kWmma;
  static constexpr int kBlocksPerWarp = TileM(kConfig) / kWmma * kColumnBlocks / Warps(kConfig);
  static_assert(kBlocksPerWarp > 0 && kColumnBlocks % kBlocksPerWarp == 0,
                "a warp's blocks share one block row, so P and the factors are loaded once");

  using Accumulator = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmma, kWmma, kWmma, float>;

  // Of the warps that share 16 rows the one with their first columns writes the sums.
  __device__ static void AddToRowSums(const SoftmaxState<kConfig>& s,
                                      const float (&sum)[kRowsOfLane]) {
    if (Column(0) != 0) return;
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int r = 0; r < kRowsOfLane; ++r) {
      const float all = QuadSum(sum[r]);
      const int row = Row() + FirstRowOfLane(lane) + 8 * r;
      if (lane % kLanesOfRow == 0) {
        s.row_sum[row] = s.row_sum[row] * s.rescale[row * kSmem.ld_rescale] + all;
      }
    }
  }

  __device__ static int FirstBlock() { return threadIdx.x / kWarpSize * kBlocksPerWarp; }
  __device__ static int Row() { return FirstBlock() / kColumnBlocks * kWmma; }
  __device__ static int Column(int b) { return (FirstBlock() % kColumnBlocks + b) * kWmma; }

  Accumulator acc_[kBlocksPerWarp];
};

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_WMMA_OUTPUT_CUH_
