// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/mma/projection/projection_kernels.cuh"
#include "kernels/sdpa/mma/projection/projection_kernels.h"

namespace warpledger::sdpa {
namespace {

__global__ void __launch_bounds__(32 * kRowsPerCta)
    LayernormRows(const __grid_constant__ ProjectionParams p, int rows, half* out) {
  NormaliseRows(p, rows, out);
}
__global__ void __launch_bounds__(128)
    ProjectQkv(const __grid_constant__ ProjectionParams p, int rows) {
  __shared__ __align__(128) unsigned char smem[kTileSmemBytes];
  ProjectTile<false>(p, rows, smem);
}
__global__ void __launch_bounds__(128)
    ProjectQkvNormalised(const __grid_constant__ ProjectionParams p, int rows) {
  __shared__ __align__(128) unsigned char smem[kTileSmemBytes];
  ProjectTile<true>(p, rows, smem);
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
