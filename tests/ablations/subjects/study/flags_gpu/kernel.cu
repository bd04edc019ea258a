// SPDX-License-Identifier: Apache-2.0
// Softmax of rows, a block for each, with flags that help, do nothing, harm or break it.

#include <cuda_runtime.h>
#include <warpledger/study.h>

#ifndef THREADS
#define THREADS 32
#endif
#ifndef PASSES
#define PASSES 1
#endif
#ifndef SHIFT
#define SHIFT 0.25f
#endif
#ifndef EXTRA_COLS
#define EXTRA_COLS 0
#endif

// Looks like a layout, and is the identity either way.
#ifdef USE_SWIZZLE
#define COLUMN(c) ((c) ^ 0)
#else
#define COLUMN(c) (c)
#endif

namespace {

// Of a value of each thread; shared: (THREADS) floats.
template <typename Join>
__device__ float Reduce(float value, float* shared, Join join) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  const float joined = shared[0];
  __syncthreads();
  return joined;
}

// x, y: (rows, cols) fp32.
__global__ void Softmax(const float* x, float* y, int cols) {
  __shared__ float shared[THREADS];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;
#ifdef NEVER_TRUE
  if (cols < 0) out[threadIdx.x] = 0;
#endif
  for (int pass = 0; pass < PASSES; ++pass) {
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += THREADS) largest = fmaxf(largest, row[COLUMN(c)]);
    largest = Reduce(largest, shared, [](float a, float b) { return fmaxf(a, b); }) + SHIFT;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += THREADS) sum += expf(row[COLUMN(c)] - largest);
    sum = Reduce(sum, shared, [](float a, float b) { return a + b; });
#ifdef SKIP_SUM
    sum = cols;
#endif
    const int end = cols + (blockIdx.x + 1 == gridDim.x ? EXTRA_COLS : 0);
    for (int c = threadIdx.x; c < end; c += THREADS) {
      const float value = expf(row[COLUMN(c)] - largest) / sum;
      *const_cast<volatile float*>(out + c) = value;
    }
  }
#ifdef IN_PLACE
  const_cast<float*>(row)[0] = 1;
#endif
#ifdef TRAPS
  __trap();
#endif
#ifdef HANGS
  while (*const_cast<volatile float*>(out) < 2) continue;
#endif
#ifdef UNMAPPED
  if (threadIdx.x == 0) *reinterpret_cast<volatile float*>(size_t{64}) = 1;
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int rows = static_cast<int>(warpledger_parameter(call, "rows"));
  const int cols = static_cast<int>(warpledger_parameter(call, "cols"));
#ifdef FAILS
  return cudaErrorInvalidValue;
#endif
#ifdef EXHAUSTS
  for (size_t bytes = size_t{1} << 30; bytes >= 1 << 20;) {
    void* kept = nullptr;
    if (cudaMalloc(&kept, bytes) != cudaSuccess) bytes /= 2;
  }
  return cudaErrorMemoryAllocation;
#endif
  cudaStream_t stream = static_cast<cudaStream_t>(call->stream);
#ifdef OWN_STREAM  // which a capture of the call's stream does not see
  static cudaStream_t own = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  stream = own;
#endif
  Softmax<<<rows, THREADS, 0, stream>>>(static_cast<const float*>(call->inputs[0]),
                                        static_cast<float*>(call->outputs[0]), cols);
  return cudaGetLastError();
}
