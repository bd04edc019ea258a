// SPDX-License-Identifier: Apache-2.0
// c = a b for n x n matrices of floats, n a multiple of 128: from one thread for each element to
// warp tiles. The last definition of a ladder says which kernel it is.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

// What a block computes at a time, and how deep a step goes.
#if defined(THREAD_TILE_2D)
constexpr int kTile = 128, kDepth = 8, kRows = 8, kCols = 8;  // of a thread
#elif defined(THREAD_TILE_1D)
constexpr int kTile = 64, kDepth = 8, kRows = 8, kCols = 1;
#else
constexpr int kTile = 32, kDepth = 32, kRows = 1, kCols = 1;
#endif
constexpr int kThreads = (kTile / kRows) * (kTile / kCols);
#ifdef DOUBLE_BUFFER
constexpr int kStages = 2;
#else
constexpr int kStages = 1;
#endif
constexpr int kLoads = kTile * kDepth / kThreads;  // elements of a and of b for each thread

// Where a thread's results are in the block's tile: (rows, cols) of them.
struct Place {
  int row, col;
};
__device__ Place PlaceOf(int t) {
#ifdef WARP_TILES  // 8 warps of 32 x 64 results, 4 x 8 threads each
  const int warp = t / 32, lane = t % 32;
  return {warp / 2 * 32 + lane / 8 * kRows, warp % 2 * 64 + lane % 8 * kCols};
#else
  return {t / (kTile / kCols) * kRows, t % (kTile / kCols) * kCols};
#endif
}

struct alignas(16) Stage {
#ifdef VECTOR_LOADS
  float a[kDepth][kTile];  // transposed, so that a thread's rows are neighbours
#else
  float a[kTile][kDepth];
#endif
  float b[kDepth][kTile];
};

// A step's elements of a and b, on their way through registers.
struct Loaded {
  alignas(16) float a[kLoads];
  alignas(16) float b[kLoads];
};

__device__ void Load(const float* a, const float* b, int n, int k, int t, Loaded& to) {
#ifdef VECTOR_LOADS
  *reinterpret_cast<float4*>(to.a) = *reinterpret_cast<const float4*>(
      a + static_cast<size_t>(t / (kDepth / 4)) * n + k + t % (kDepth / 4) * 4);
  *reinterpret_cast<float4*>(to.b) = *reinterpret_cast<const float4*>(
      b + static_cast<size_t>(k + t / (kTile / 4)) * n + t % (kTile / 4) * 4);
#else
  for (int i = 0; i < kLoads; ++i) {
    const int e = t + i * kThreads;
    to.a[i] = a[static_cast<size_t>(e / kDepth) * n + k + e % kDepth];
    to.b[i] = b[static_cast<size_t>(k + e / kTile) * n + e % kTile];
  }
#endif
}

__device__ void Store(const Loaded& from, int t, Stage& to) {
#ifdef VECTOR_LOADS
  for (int i = 0; i < 4; ++i) to.a[t % (kDepth / 4) * 4 + i][t / (kDepth / 4)] = from.a[i];
  *reinterpret_cast<float4*>(&to.b[t / (kTile / 4)][t % (kTile / 4) * 4]) =
      *reinterpret_cast<const float4*>(from.b);
#else
  for (int i = 0; i < kLoads; ++i) {
    const int e = t + i * kThreads;
    to.a[e / kDepth][e % kDepth] = from.a[i];
    to.b[e / kTile][e % kTile] = from.b[i];
  }
#endif
}

__device__ void Multiply(const Stage& stage, Place at, float (&sums)[kRows][kCols]) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    float a[kRows], b[kCols];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#ifdef VECTOR_LOADS
      a[i] = stage.a[k][at.row + i];
#else
      a[i] = stage.a[at.row + i][k];
#endif
    }
#pragma unroll
    for (int j = 0; j < kCols; ++j) b[j] = stage.b[k][at.col + j];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; ++j) sums[i][j] += a[i] * b[j];
  }
}

// a, b, c: (n, n).
__global__ void __launch_bounds__(kThreads)
    Gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
#ifdef SHARED_TILES
  __shared__ Stage stages[kStages];
  const int t = threadIdx.x;
  const Place at = PlaceOf(t);
  a += static_cast<size_t>(blockIdx.y) * kTile * n;
  b += blockIdx.x * kTile;
  c += static_cast<size_t>(blockIdx.y) * kTile * n + blockIdx.x * kTile;
  float sums[kRows][kCols] = {};
  Loaded next;
  Load(a, b, n, 0, t, next);
#ifdef DOUBLE_BUFFER
  Store(next, t, stages[0]);
  __syncthreads();
  for (int k = 0, s = 0; k < n; k += kDepth, s ^= 1) {
    if (k + kDepth < n) Load(a, b, n, k + kDepth, t, next);
    Multiply(stages[s], at, sums);
    if (k + kDepth < n) Store(next, t, stages[s ^ 1]);
    __syncthreads();
  }
#else
  for (int k = 0; k < n; k += kDepth) {
    if (k > 0) Load(a, b, n, k, t, next);
    Store(next, t, stages[0]);
    __syncthreads();
    Multiply(stages[0], at, sums);
    __syncthreads();
  }
#endif
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float* row = c + static_cast<size_t>(at.row + i) * n + at.col;
#ifdef VECTOR_LOADS
#pragma unroll
    for (int j = 0; j < kCols; j += 4)
      *reinterpret_cast<float4*>(row + j) = {sums[i][j], sums[i][j + 1], sums[i][j + 2],
                                             sums[i][j + 3]};
#else
#pragma unroll
    for (int j = 0; j < kCols; ++j) row[j] = sums[i][j];
#endif
  }
#else
#ifdef COALESCED
  const int row = blockIdx.y * kTile + threadIdx.x / kTile;
  const int col = blockIdx.x * kTile + threadIdx.x % kTile;
#else
  const int row = blockIdx.y * kTile + threadIdx.x % kTile;
  const int col = blockIdx.x * kTile + threadIdx.x / kTile;
#endif
  float sum = 0;
  for (int k = 0; k < n; ++k)
    sum += a[static_cast<size_t>(row) * n + k] * b[static_cast<size_t>(k) * n + col];
  c[static_cast<size_t>(row) * n + col] = sum;
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int n = static_cast<int>(warpledger_parameter(call, "n"));
  const dim3 blocks(n / kTile, n / kTile);
  Gemm<<<blocks, kThreads, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const float*>(call->inputs[0]), static_cast<const float*>(call->inputs[1]),
      static_cast<float*>(call->outputs[0]), n);
  return cudaGetLastError();
}
