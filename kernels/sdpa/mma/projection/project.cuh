// SPDX-License-Identifier: Apache-2.0
// A product of 64 rows of x with rows of W, for the projection in front of attention:
// the same code in a kernel of its own and inside of the attention kernel.
//
//   Projector<2, 3, true, false> projector(smem, base, params, thread);
//   projector.MeasureRows(x, rows);                   // with a layernorm
//   projector.Run(x, rows, first_row_of_slab, sums);  // sums += layernorm(x) W^T
//   projector.ForEachPair(sums, store);
//
// 4 * kGroups warps: a warp has 16 of the rows and the kGroups-th part of the columns.
// Tiles of x and W, 64 of E wide, go through two stages of shared memory, one ahead.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECT_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECT_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/ptx.cuh"
#include "kernels/sdpa/mma/fragment.cuh"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/shared/forward_params.h"

namespace warpledger::sdpa {

inline constexpr float kProjectionEpsilon = 1e-5f;  // kLayerNormEpsilon

__device__ inline float WarpSum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// Mean and 1 / width of a row of `embed_dim` fp16, a multiple of 8 and at most
// kMaxEmbedDim, by a whole warp. The row stays in registers between both passes: the sum
// of squares of the differences loses nothing where a row's mean is large.
__device__ inline float2 MeasureRow(const half* row, int embed_dim) {
  constexpr int kPieces = kMaxEmbedDim / 8 / 32;
  const int lane = threadIdx.x % 32;
  uint4 pieces[kPieces];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int piece = i * 32 + lane;
    pieces[i] = make_uint4(0, 0, 0, 0);
    if (piece * 8 < embed_dim) pieces[i] = __ldg(reinterpret_cast<const uint4*>(row) + piece);
    const auto* pairs = reinterpret_cast<const half2*>(&pieces[i]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 x = __half22float2(pairs[j]);
      sum += x.x + x.y;
    }
  }
  const float mean = WarpSum(sum) / embed_dim;
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if ((i * 32 + lane) * 8 >= embed_dim) continue;
    const auto* pairs = reinterpret_cast<const half2*>(&pieces[i]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 x = __half22float2(pairs[j]);
      squares += (x.x - mean) * (x.x - mean) + (x.y - mean) * (x.y - mean);
    }
  }
  return make_float2(mean, rsqrtf(WarpSum(squares) / embed_dim + kProjectionEpsilon));
}

// Eight elements of a row, normalised.
__device__ inline uint4 NormalisePiece(uint4 piece, float2 stats, uint4 gamma, uint4 beta) {
  uint4 result;
  const auto* x = reinterpret_cast<const half2*>(&piece);
  const auto* g = reinterpret_cast<const half2*>(&gamma);
  const auto* b = reinterpret_cast<const half2*>(&beta);
  auto* out = reinterpret_cast<half2*>(&result);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 value = __half22float2(x[j]);
    const float2 scale = __half22float2(g[j]);
    const float2 shift = __half22float2(b[j]);
    out[j] = __floats2half2_rn((value.x - stats.x) * stats.y * scale.x + shift.x,
                               (value.y - stats.x) * stats.y * scale.y + shift.y);
  }
  return result;
}

// kSlabs: slabs of 64 rows of W, so 64 * kSlabs columns of the product.
// kLayernorm: x is normalised on its way to shared memory, through registers.
// kWStays: W is loaded once, by LoadW, and all of it stays; else its tiles come with x's.
template <int kGroups, int kSlabs, bool kLayernorm, bool kWStays>
class Projector {
 public:
  static constexpr ProjectionSmem kSmem = MakeProjectionSmem(kSlabs, kWStays);
  static constexpr int kThreads = 128 * kGroups;
  static constexpr int kColumns = 64 * kSlabs / kGroups;  // of a warp
  static_assert(kColumns % 16 == 0, "a warp takes whole fragments");
  using Sums = float[kColumns / 8][4];

  // The region is free, and stays this projection's until the next barrier of all
  // kThreads threads behind Run.
  __device__ Projector(unsigned char* region, const ProjectionParams& p, int thread)
      : base_(MmaSharedAddress(region)),
        stats_(reinterpret_cast<float2*>(region + kSmem.stats)),
        p_(p),
        thread_(thread),
        row_block_(thread / 32 % 4),
        first_column_(thread / 128 * kColumns) {}

  // Loads W for all Runs to come. `first_row_of(slab)`: W's row of a slab's first.
  template <typename FirstRowOf>
  __device__ void LoadW(FirstRowOf first_row_of) const {
    static_assert(kWStays);
    for (int c = 0; c < Chunks(); ++c) FetchW(c, first_row_of);
    ptx::CpAsyncCommit();
  }

  // Every row's mean and width. Ends in a barrier.
  //   x: (rows, embed_dim) fp16, the first of the tile; rows from `rows` on count as zeros
  __device__ void MeasureRows(const half* x, int rows) const {
    const int warp = thread_ / 32;
#pragma unroll 4
    for (int row = warp; row < kProjectionRows; row += kThreads / 32) {
      float2 stats = make_float2(0.0f, 0.0f);
      if (row < rows) stats = MeasureRow(x + int64_t{row} * p_.embed_dim, p_.embed_dim);
      if (thread_ % 32 == 0) stats_[row] = stats;
    }
    __syncthreads();
  }

  // All kThreads threads. `first_row_of` as above, unused where W stays.
  template <typename FirstRowOf>
  __device__ void Run(const half* x, int rows, FirstRowOf first_row_of, Sums& sums) const {
    uint4 pieces[kPieces];
    Fetch(0, x, rows, first_row_of, pieces);
    StoreNormalised(0, rows, pieces);
#pragma unroll 1
    for (int c = 0; c < Chunks(); ++c) {
      ptx::CpAsyncWait<0>();
      __syncthreads();  // tile c is there, and the one before has been read
      const bool more = c + 1 < Chunks();
      if (more) Fetch(c + 1, x, rows, first_row_of, pieces);
      Multiply(c, sums);
      if (more) StoreNormalised(c + 1, rows, pieces);
    }
  }

  // Calls store(row, column, fp16 pair of the column and its neighbour) for what the lane
  // holds of the product, 64 rows x 64 * kSlabs columns.
  template <typename Store>
  __device__ void ForEachPair(const Sums& sums, Store store) const {
    const int lane = thread_ % 32;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const half2 pair = __floats2half2_rn(sums[n][2 * r], sums[n][2 * r + 1]);
        store(row_block_ * 16 + r * 8 + lane / 4, first_column_ + n * 8 + lane % 4 * 2,
              *reinterpret_cast<const uint32_t*>(&pair));
      }
    }
  }

 private:
  static constexpr MmaLayout kLayout = MmaLayout::kXorSwizzle;
  static constexpr int kPieces = kProjectionRows * 8 / kThreads;  // of 16 bytes of a tile of x

  __device__ int Chunks() const { return p_.embed_dim / kProjectionColumns; }
  __device__ uint32_t XTile(int c) const { return base_ + kSmem.x + c % 2 * kProjectionTileBytes; }
  // The slabs of a chunk lie one behind the other: rows 0 .. 64 * kSlabs - 1.
  __device__ uint32_t WTile(int c) const {
    return base_ + kSmem.w + (kWStays ? c : c % 2) * kSlabs * kProjectionTileBytes;
  }
  // A thread keeps to its column of 8; its rows are kThreads / 8 apart.
  __device__ int Row(int piece) const { return (piece * kThreads + thread_) / 8; }

  template <typename FirstRowOf>
  __device__ void FetchW(int c, FirstRowOf first_row_of) const {
    const auto* w = static_cast<const half*>(p_.w) + c * kProjectionColumns + thread_ % 8 * 8;
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      const int first = first_row_of(slab);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        ptx::CpAsync16(WTile(c) + ChunkOffset(kLayout, 64, slab * 64 + Row(i), thread_ % 8),
                       w + int64_t{first + Row(i)} * p_.embed_dim, true);
      }
    }
  }

  // Starts the loads of chunk c: into shared memory, or of x into `pieces`.
  template <typename FirstRowOf>
  __device__ void Fetch(int c, const half* x, int rows, FirstRowOf first_row_of,
                        uint4 (&pieces)[kPieces]) const {
    const half* from = x + c * kProjectionColumns + thread_ % 8 * 8;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const bool valid = Row(i) < rows;
      // The address of a row that is not read must still be one inside the tensor.
      const half* piece = from + (valid ? int64_t{Row(i)} * p_.embed_dim : 0);
      if constexpr (kLayernorm) {
        pieces[i] = make_uint4(0, 0, 0, 0);
        if (valid) pieces[i] = __ldg(reinterpret_cast<const uint4*>(piece));
      } else {
        ptx::CpAsync16(XTile(c) + ChunkOffset(kLayout, 64, Row(i), thread_ % 8), piece, valid);
      }
    }
    if constexpr (!kWStays) FetchW(c, first_row_of);
    ptx::CpAsyncCommit();
  }

  __device__ void StoreNormalised(int c, int rows, const uint4 (&pieces)[kPieces]) const {
    if constexpr (kLayernorm) {
      const int piece = c * 8 + thread_ % 8;
      const uint4 gamma = __ldg(static_cast<const uint4*>(p_.gamma) + piece);
      const uint4 beta = __ldg(static_cast<const uint4*>(p_.beta) + piece);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (Row(i) < rows) x = NormalisePiece(pieces[i], stats_[Row(i)], gamma, beta);
        ptx::StoreShared128(XTile(c) + ChunkOffset(kLayout, 64, Row(i), thread_ % 8), x);
      }
    }
  }

  __device__ void Multiply(int c, Sums& sums) const {
#pragma unroll
    for (int k = 0; k < kProjectionColumns / 16; ++k) {
      uint32_t a[4];
      LdMatrix(a, rows_first_.Block(XTile(c), row_block_ * 16, k));
#pragma unroll
      for (int n = 0; n < kColumns / 8; n += 2) {
        uint32_t b[4];
        LdMatrix(b, columns_first_.Block(WTile(c), first_column_ + n * 8, k));
        Mma<false>(sums[n], a, b[0], b[1]);
        Mma<false>(sums[n + 1], a, b[2], b[3]);
      }
    }
  }

  const uint32_t base_;
  float2* const stats_;
  const ProjectionParams& p_;
  const int thread_;
  const int row_block_;
  const int first_column_;
  const FragmentAddress<kLayout, 64, true> rows_first_;
  const FragmentAddress<kLayout, 64, false> columns_first_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECT_CUH_
