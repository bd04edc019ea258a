// SPDX-License-Identifier: Apache-2.0
// y = x transposed, for n x n matrices of floats. A block moves a tile of 32 x 32.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kTile = 32;
#ifdef FOUR_ROWS
constexpr int kRows = 8;  // of threads: each moves four elements of a column
#else
constexpr int kRows = kTile;
#endif
#if defined(PADDING) && !defined(SWIZZLE)
constexpr int kPitch = kTile + 1;
#else
constexpr int kPitch = kTile;
#endif

// The place of an element of a tile in shared memory.
__device__ int At(int row, int col) {
#ifdef SWIZZLE
  return row * kPitch + (col ^ row);
#else
  return row * kPitch + col;
#endif
}

// x, y: (n, n), n a multiple of 32.
__global__ void Transpose(const float* x, float* y, int n) {
#ifdef DIAGONAL  // neighbouring blocks then differ in both coordinates
  const int tile_y = blockIdx.x;
  const int tile_x = (blockIdx.x + blockIdx.y) % gridDim.x;
#else
  const int tile_x = blockIdx.x;
  const int tile_y = blockIdx.y;
#endif
#ifdef VECTOR_LOADS
  __shared__ float tile[kTile * kPitch];
  const int t = threadIdx.y * kTile + threadIdx.x;
  const int row = t / 8;
  const int col = t % 8 * 4;
  const float4 in = *reinterpret_cast<const float4*>(
      x + static_cast<size_t>(tile_y * kTile + row) * n + tile_x * kTile + col);
  tile[At(row, col)] = in.x;
  tile[At(row, col + 1)] = in.y;
  tile[At(row, col + 2)] = in.z;
  tile[At(row, col + 3)] = in.w;
  __syncthreads();
  const float4 out = {tile[At(col, row)], tile[At(col + 1, row)], tile[At(col + 2, row)],
                      tile[At(col + 3, row)]};
  *reinterpret_cast<float4*>(y + static_cast<size_t>(tile_x * kTile + row) * n + tile_y * kTile +
                             col) = out;
#else
  const int col = tile_x * kTile + threadIdx.x;
  const int first = tile_y * kTile + threadIdx.y;
#ifdef SHARED_TILE
  __shared__ float tile[kTile * kPitch];
  for (int i = 0; i < kTile; i += kRows)
    tile[At(threadIdx.y + i, threadIdx.x)] = x[static_cast<size_t>(first + i) * n + col];
  __syncthreads();
  const int out_col = tile_y * kTile + threadIdx.x;
  const int out_row = tile_x * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows)
    y[static_cast<size_t>(out_row + i) * n + out_col] = tile[At(threadIdx.x, threadIdx.y + i)];
#else
  for (int i = 0; i < kTile; i += kRows)
    y[static_cast<size_t>(col) * n + first + i] = x[static_cast<size_t>(first + i) * n + col];
#endif
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int n = static_cast<int>(warpledger_parameter(call, "n"));
  const dim3 blocks(n / kTile, n / kTile);
  Transpose<<<blocks, dim3(kTile, kRows), 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const float*>(call->inputs[0]), static_cast<float*>(call->outputs[0]), n);
  return cudaGetLastError();
}
