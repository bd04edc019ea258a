#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/sdpa/mma/project.cuh"
#include "kernels/sdpa/mma/projection_kernels.h"

namespace warpledger::sdpa {
namespace {

constexpr int kRowsPerCta = 4;  // a warp each: 128 CTAs at the mission shapes' 512 rows

// Writes layernorm(x) row by row.
//   x, out: (rows, embed_dim) fp16
__global__ void __launch_bounds__(32 * kRowsPerCta)
    LayernormRows(const __grid_constant__ ProjectionParams p, int rows, half* out) {
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
template <bool kLayernorm>
__device__ void ProjectTile(const ProjectionParams& p, int rows) {
  using TileProjector = Projector<1, 1, kLayernorm, false>;
  __shared__ __align__(128) unsigned char smem[TileProjector::kSmem.bytes];
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

__global__ void __launch_bounds__(128)
    ProjectQkv(const __grid_constant__ ProjectionParams p, int rows) {
  ProjectTile<false>(p, rows);
}
__global__ void __launch_bounds__(128)
    ProjectQkvNormalised(const __grid_constant__ ProjectionParams p, int rows) {
  ProjectTile<true>(p, rows);
}

}  // namespace

cudaError_t LaunchLayernorm(const ProjectionParams& p, int rows, void* out, cudaStream_t stream) {
  const auto ctas = static_cast<unsigned>((rows + kRowsPerCta - 1) / kRowsPerCta);
  LayernormRows<<<ctas, 32 * kRowsPerCta, 0, stream>>>(p, rows, static_cast<half*>(out));
  return cudaGetLastError();
}

cudaError_t LaunchProjection(const ProjectionParams& p, int rows, bool layernorm,
                             cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(p.columns / kProjectionRows),
                  static_cast<unsigned>((rows + kProjectionRows - 1) / kProjectionRows));
  if (layernorm) {
    ProjectQkvNormalised<<<grid, 128, 0, stream>>>(p, rows);
  } else {
    ProjectQkv<<<grid, 128, 0, stream>>>(p, rows);
  }
  return cudaGetLastError();
}

}  // namespace warpledger::sdpa
