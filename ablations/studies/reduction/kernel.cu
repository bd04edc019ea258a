// SPDX-License-Identifier: Apache-2.0
// The sum of n numbers, in the steps of the classic lecture. Each launch leaves one number for each
// block; launches follow until one number is left.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kMostBlocks = 1024;  // of MANY_PER_THREAD: about eight on each SM

__device__ float Sum(float4 x) { return (x.x + x.y) + (x.z + x.w); }

// What a thread adds up before the block does.
__device__ float Load(const float* x, int n) {
#if defined(VECTOR_LOADS)
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n / 4; i += gridDim.x * kThreads)
    sum += Sum(reinterpret_cast<const float4*>(x)[i]);
  if (blockIdx.x == 0 && threadIdx.x < n % 4) sum += x[n - 1 - threadIdx.x];
  return sum;
#elif defined(MANY_PER_THREAD)
  float sum = 0;
  for (int i = blockIdx.x * (2 * kThreads) + threadIdx.x; i < n; i += gridDim.x * (2 * kThreads)) {
    sum += x[i];
    if (i + kThreads < n) sum += x[i + kThreads];
  }
  return sum;
#elif defined(FIRST_ADD)
  const int i = blockIdx.x * (2 * kThreads) + threadIdx.x;
  return (i < n ? x[i] : 0) + (i + kThreads < n ? x[i + kThreads] : 0);
#else
  const int i = blockIdx.x * kThreads + threadIdx.x;
  return i < n ? x[i] : 0;
#endif
}

// Of a number of each thread; thread 0 has the sum. shared: (threads).
__device__ float SumOfBlock(float sum, float* shared, int threads) {
  const int tid = threadIdx.x;
#if defined(SHUFFLES)
  constexpr int kWarps = kThreads / kWarp;
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (tid % kWarp == 0) shared[tid / kWarp] = sum;
  __syncthreads();
  sum = tid < kWarps ? shared[tid] : 0;
  if (tid < kWarp)
    for (int step = kWarps / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  return sum;
#else
  shared[tid] = sum;
  __syncthreads();
#if defined(SEQUENTIAL)
#ifdef UNROLL_LAST_WARP
  constexpr int kLast = kWarp;
#else
  constexpr int kLast = 0;
#endif
#ifdef FULL_UNROLL
#pragma unroll
  for (int step = kThreads / 2; step > kLast; step /= 2) {
#else
#pragma unroll 1
  for (int step = threads / 2; step > kLast; step /= 2) {
#endif
    if (tid < step) shared[tid] += shared[tid + step];
    __syncthreads();
  }
#ifdef UNROLL_LAST_WARP
  if (tid < kWarp) {
#pragma unroll
    for (int step = kWarp; step > 0; step /= 2) {
      const float other = shared[tid + step];
      __syncwarp();
      shared[tid] += other;
      __syncwarp();
    }
  }
#endif
#else
#pragma unroll 1
  for (int step = 1; step < threads; step *= 2) {
#ifdef STRIDED_INDEX
    const int i = 2 * step * tid;
    if (i < threads) shared[i] += shared[i + step];
#else
    if (tid % (2 * step) == 0) shared[tid] += shared[tid + step];
#endif
    __syncthreads();
  }
#endif
  return shared[0];
#endif
}

// x: (n), sums: (blocks).
__global__ void Reduce(const float* x, float* sums, int n) {
  __shared__ float shared[kThreads];
  const float sum = SumOfBlock(Load(x, n), shared, blockDim.x);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

int BlocksFor(int n) {
#if defined(FIRST_ADD)
  const int blocks = (n + 2 * kThreads - 1) / (2 * kThreads);
#else
  const int blocks = (n + kThreads - 1) / kThreads;
#endif
#ifdef MANY_PER_THREAD
  if (blocks > kMostBlocks) return kMostBlocks;
#endif
  return blocks;
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const cudaStream_t stream = static_cast<cudaStream_t>(call->stream);
  const float* from = static_cast<const float*>(call->inputs[0]);
  float* scratch = static_cast<float*>(call->workspace);
  int n = static_cast<int>(warpledger_parameter(call, "n"));
  while (n > 1) {
    const int blocks = BlocksFor(n);
    float* to = blocks == 1 ? static_cast<float*>(call->outputs[0]) : scratch;
    Reduce<<<blocks, kThreads, 0, stream>>>(from, to, n);
    from = to;
    scratch += (blocks + 3) / 4 * 4;  // float4 stays aligned
    n = blocks;
  }
  return cudaGetLastError();
}
