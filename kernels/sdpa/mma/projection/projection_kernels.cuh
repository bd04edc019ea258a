// SPDX-License-Identifier: Apache-2.0
// The bodies of the kernels in front of attention (projection_kernels.h).

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_CUH_
#define WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_CUH_

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/projection/project.cuh"

namespace warpledger::sdpa {

inline constexpr int kTileSmemBytes = MakeProjectionSmem(1, false).bytes;
inline constexpr int kRowsPerCta = 4;  // a warp each: 128 CTAs at the mission shapes' 512 rows

// Writes layernorm(x) row by row.
//   x, out: (rows, embed_dim) fp16
__device__ inline void NormaliseRows(const ProjectionParams& p, int rows, half* out) {
  const int row = blockIdx.x * kRowsPerCta + threadIdx.x / 32;
  if (row >= rows) return;
  const half* x = static_cast<const half*>(p.x) + int64_t{row} * p.embed_dim;
  const float2 stats = MeasureRow(x, p.embed_dim);
  auto* to = reinterpret_cast<uint4*>(out + int64_t{row} * p.embed_dim);
  for (int piece = threadIdx.x % 32; piece * 8 < p.embed_dim; piece += 32) {
    to[piece] = NormalisePiece(__ldg(reinterpret_cast<const uint4*>(x) + piece), stats,
                               __ldg(static_cast<const uint4*>(p.gamma) + piece),
                               __ldg(static_cast<const uint4*>(p.beta) + piece));
  }
}

// One tile of 64 rows and 64 columns of x W^T, or of layernorm(x) W^T.
//   smem: kTileSmemBytes, 128-byte aligned
template <bool kLayernorm>
__device__ void ProjectTile(const ProjectionParams& p, int rows, unsigned char* smem) {
  using TileProjector = Projector<1, 1, kLayernorm, false>;
  const int first_row = blockIdx.y * kProjectionRows;
  const int first_column = blockIdx.x * kProjectionRows;
  const int valid = min(rows - first_row, kProjectionRows);
  const half* x = static_cast<const half*>(p.x) + int64_t{first_row} * p.embed_dim;
  const TileProjector projector(smem, p, threadIdx.x);
  if constexpr (kLayernorm) projector.MeasureRows(x, valid);
  typename TileProjector::Sums sums = {};
  projector.Run(
      x, valid, [&](int) { return first_column; }, sums);
  __syncthreads();
  const uint32_t base = MmaSharedAddress(smem);
  projector.ForEachPair(sums, [&](int row, int column, uint32_t pair) {
    StoreSharedPair(
        base + ChunkOffset(MmaLayout::kXorSwizzle, 64, row, column / 8) + column % 8 * 2, pair);
  });
  __syncthreads();
  auto* out = static_cast<half*>(p.qkv) + int64_t{first_row} * p.columns + first_column;
  for (int i = threadIdx.x; i < kProjectionRows * 8; i += TileProjector::kThreads) {
    const int row = i / 8;
    if (row >= valid) break;
    *reinterpret_cast<uint4*>(out + int64_t{row} * p.columns + i % 8 * 8) =
        *reinterpret_cast<const uint4*>(smem + ChunkOffset(MmaLayout::kXorSwizzle, 64, row, i % 8));
  }
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PROJECTION_PROJECTION_KERNELS_CUH_
