// O += P V on tensor cores through the WMMA API, and its epilogue.

#ifndef WARPLEDGER_KERNELS_SDPA_WMMA_OUTPUT_CUH_
#define WARPLEDGER_KERNELS_SDPA_WMMA_OUTPUT_CUH_

#include <cuda_fp16.h>
#include <mma.h>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/parts/copy.cuh"
#include "kernels/sdpa/parts/epilogue.cuh"
#include "kernels/sdpa/parts/softmax.cuh"
#include "kernels/sdpa/simt/vector.cuh"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/wmma/scores.cuh"

namespace warpledger::sdpa {

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
#pragma unroll
    for (int key = 0; key < TileN(kConfig); key += kWmma) {
      wmma::fragment<wmma::matrix_a, kWmma, kWmma, kWmma, half, wmma::row_major> p;
      wmma::load_matrix_sync(p, s.probs + row * kSmem.ld_probs + key, kSmem.ld_probs);
#pragma unroll
      for (int b = 0; b < kBlocksPerWarp; ++b) {
        wmma::fragment<wmma::matrix_b, kWmma, kWmma, kWmma, half, wmma::row_major> v;
        wmma::load_matrix_sync(v, kv.v + key * kSmem.ld_tile + Column(b), kSmem.ld_tile);
        wmma::mma_sync(acc_[b], p, v, acc_[b]);
      }
    }
  }

  // Stages O in shared memory over K and V, normalises it and writes it. All
  // threads call it; it synchronises.
  __device__ void Store(unsigned char* smem, const SoftmaxState<kConfig>& s, const Work& work) {
    namespace wmma = nvcuda::wmma;
    float* out = reinterpret_cast<float*>(smem + kSmem.out);
    if constexpr (kConfig.cp_async_stages > 0) ptx::CpAsyncWait<0>();
    __syncthreads();  // no warp reads K or V any more, no copy is in flight
#pragma unroll
    for (int b = 0; b < kBlocksPerWarp; ++b) {
      wmma::store_matrix_sync(out + Row() * kSmem.ld_out + Column(b), acc_[b], kSmem.ld_out,
                              wmma::mem_row_major);
    }
    __syncthreads();
    constexpr int kVec = SimtVector<kConfig>();
    constexpr int kChunks = kConfig.head_dim / kVec;
    for (int i = threadIdx.x; i < work.rows * kChunks; i += Threads(kConfig)) {
      const int row = i / kChunks;
      const int col = i % kChunks * kVec;
      const float scale = InverseSum(s.row_sum[row]);
      float values[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) values[j] = out[row * kSmem.ld_out + col + j] * scale;
      StoreVector<kVec>(work.o + row * kConfig.head_dim + col, values);
    }
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

  __device__ static int FirstBlock() { return threadIdx.x / kWarpSize * kBlocksPerWarp; }
  __device__ static int Row() { return FirstBlock() / kColumnBlocks * kWmma; }
  __device__ static int Column(int b) { return (FirstBlock() % kColumnBlocks + b) * kWmma; }

  Accumulator acc_[kBlocksPerWarp];
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WMMA_OUTPUT_CUH_
