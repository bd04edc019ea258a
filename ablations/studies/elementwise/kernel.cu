// SPDX-License-Identifier: Apache-2.0
// y = f(x + bias[column]) for rows of `cols` numbers, where f is one form of GELU in even columns
// and another in odd ones: a kernel to try small habits on.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

#ifndef THREADS
#define THREADS 1024
#endif
constexpr int kMostBlocks = 132 * 2 * 1024 / THREADS;  // one wave on an H100 or H200

#ifdef RESTRICT
#define ALONE __restrict__
#else
#define ALONE
#endif
#ifdef FORCEINLINE
#define INLINE __forceinline__
#else
#define INLINE
#endif
#ifdef INDEX_32
using Index = int;
#else
using Index = long long;
#endif

__device__ INLINE float Read(const float* x) {
#ifdef READ_ONLY
  return __ldg(x);
#else
  return *x;
#endif
}

__device__ INLINE float ByTanh(float x) {
  return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
__device__ INLINE float BySigmoid(float x) { return x / (1 + expf(-1.702f * x)); }

__device__ INLINE float Activate(float x, bool odd) {
#ifdef SELECT
  const float by_tanh = ByTanh(x);
  const float by_sigmoid = BySigmoid(x);
  return odd ? by_sigmoid : by_tanh;
#else
  if (odd) return BySigmoid(x);
  return ByTanh(x);
#endif
}

__device__ INLINE int ColumnOf(Index i, int cols) {
#ifdef MASK  // cols is a power of two
  return i & (cols - 1);
#else
  return i % cols;
#endif
}

// x, y: (count), rows of `cols`, a multiple of 4.
__global__ void BiasGelu(const float* ALONE x, const float* ALONE bias, float* ALONE y, int cols,
                         Index count) {
  Index i = static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x;
#if defined(VECTOR_LOADS)
  if (4 * i >= count) return;
  const float4 four = reinterpret_cast<const float4*>(x)[i];
  const int col = ColumnOf(4 * i, cols);
  const float4 add = *reinterpret_cast<const float4*>(bias + col);
  reinterpret_cast<float4*>(y)[i] = {
      Activate(four.x + add.x, false), Activate(four.y + add.y, true),
      Activate(four.z + add.z, false), Activate(four.w + add.w, true)};
#elif defined(GRID_STRIDE)
#ifdef UNROLL
#pragma unroll 4
#else
#pragma unroll 1
#endif
  for (; i < count; i += static_cast<Index>(gridDim.x) * THREADS) {
    const int col = ColumnOf(i, cols);
    y[i] = Activate(Read(x + i) + Read(bias + col), col % 2 != 0);
  }
#else
  if (i >= count) return;
  const int col = ColumnOf(i, cols);
  y[i] = Activate(Read(x + i) + Read(bias + col), col % 2 != 0);
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int cols = static_cast<int>(warpledger_parameter(call, "cols"));
  const Index count = static_cast<Index>(warpledger_parameter(call, "rows")) * cols;
#ifdef VECTOR_LOADS
  const Index threads = count / 4;
#else
  const Index threads = count;
#endif
  int blocks = static_cast<int>((threads + THREADS - 1) / THREADS);
#ifdef GRID_STRIDE
  if (blocks > kMostBlocks) blocks = kMostBlocks;
#endif
  BiasGelu<<<blocks, THREADS, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const float*>(call->inputs[0]), static_cast<const float*>(call->inputs[1]),
      static_cast<float*>(call->outputs[0]), cols, count);
  return cudaGetLastError();
}
