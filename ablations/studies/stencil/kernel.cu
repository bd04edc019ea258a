// SPDX-License-Identifier: Apache-2.0
// A star stencil on an n x n grid: a point's new value is 0.5 of its own and equal shares of its
// neighbours to the distance `radius` on both axes. Points near the edge stay as they are.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

#ifdef WIDE_BLOCK
constexpr int kBlockX = 64, kBlockY = 4;
#else
constexpr int kBlockX = 16, kBlockY = 16;
#endif
#ifdef COLUMN
constexpr int kPoints = 8;  // of a thread, one above the other
#else
constexpr int kPoints = 1;
#endif
constexpr int kTileY = kBlockY * kPoints;

#ifdef READ_ONLY
__device__ float Read(const float* x) { return __ldg(x); }
#else
__device__ float Read(const float* x) { return *x; }
#endif

template <int kRadius>
__device__ float Share() {
  return 0.5f / (4 * kRadius);
}

// The new value of a point. near: where its own value is; pitch: from row to row.
template <int kRadius, typename ReadOne>
__device__ float Point(const float* near, int pitch, ReadOne read) {
  float sum = 0;
#pragma unroll
  for (int d = 1; d <= kRadius; ++d)
    sum += (read(near - d) + read(near + d)) + (read(near - d * pitch) + read(near + d * pitch));
  return 0.5f * read(near) + 0.5f / (4 * kRadius) * sum;
}

// x, y: (n, n), n a multiple of a block's tile.
template <int kRadius>
__global__ void Star(const float* x, float* y, int n) {
  const int left = blockIdx.x * kBlockX;
  const int top = blockIdx.y * kTileY;
  const int col = left + threadIdx.x;
  const int row = top + threadIdx.y * kPoints;
#ifdef SHARED_TILE
  constexpr int kPitch = kBlockX + 2 * kRadius;
  __shared__ float tile[kTileY + 2 * kRadius][kPitch];
  for (int r = threadIdx.y; r < kTileY + 2 * kRadius; r += kBlockY) {
    for (int c = threadIdx.x; c < kPitch; c += kBlockX) {
      const int from_row = min(max(top + r - kRadius, 0), n - 1);
      const int from_col = min(max(left + c - kRadius, 0), n - 1);
      tile[r][c] = Read(x + static_cast<size_t>(from_row) * n + from_col);
    }
  }
  __syncthreads();
  const float* near = &tile[row - top + kRadius][threadIdx.x + kRadius];
  const int pitch = kPitch;
  const auto read = [](const float* from) { return *from; };
#else
  const float* near = x + static_cast<size_t>(row) * n + col;
  const int pitch = n;
  const auto read = [](const float* from) { return Read(from); };
#endif
  float* out = y + static_cast<size_t>(row) * n + col;
  float values[kPoints];
  const bool inner = left >= kRadius && top >= kRadius && left + kBlockX + kRadius <= n &&
                     top + kTileY + kRadius <= n;  // all of the block's points
  if (inner) {
#pragma unroll
    for (int p = 0; p < kPoints; ++p) values[p] = Point<kRadius>(near + p * pitch, pitch, read);
  } else {
    for (int p = 0; p < kPoints; ++p) {
      const bool edge =
          row + p < kRadius || col < kRadius || row + p >= n - kRadius || col >= n - kRadius;
      values[p] = edge ? read(near + p * pitch) : Point<kRadius>(near + p * pitch, pitch, read);
    }
  }
#pragma unroll
  for (int p = 0; p < kPoints; ++p) out[static_cast<size_t>(p) * n] = values[p];
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int n = static_cast<int>(warpledger_parameter(call, "n"));
  const dim3 blocks(n / kBlockX, n / kTileY);
  const dim3 threads(kBlockX, kBlockY);
  const auto kernel = warpledger_parameter(call, "radius") == 1 ? Star<1> : Star<4>;
  kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const float*>(call->inputs[0]), static_cast<float*>(call->outputs[0]), n);
  return cudaGetLastError();
}
