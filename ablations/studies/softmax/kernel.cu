// SPDX-License-Identifier: Apache-2.0
// Softmax of rows, a block for each: the maximum, the sum, the results.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kWarp = 32;
#ifdef WARP_FOR_ROW
constexpr int kThreads = kWarp;  // of a row
constexpr int kRows = 8;         // of a block
#else
constexpr int kThreads = 256;
constexpr int kRows = 1;
#endif
constexpr float kLowest = -3e38f;

__device__ float Exp(float x) {
#ifdef FAST_EXP
  return __expf(x);
#else
  return expf(x);
#endif
}

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Of a value of each of a row's threads, to all of them. shared: (threads).
template <typename Join>
__device__ float Reduce(float value, float* shared, Join join) {
#if defined(SHUFFLES) || defined(WARP_FOR_ROW)
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = join(value, __shfl_xor_sync(~0u, value, step));
  if (kThreads == kWarp) return value;
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = shared[threadIdx.x % (kThreads / kWarp)];
  for (int step = kThreads / kWarp / 2; step > 0; step /= 2)
    value = join(value, __shfl_xor_sync(~0u, value, step));
  __syncthreads();
  return value;
#else
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
#endif
}

// Calls f(value, column) for each element of a row that is this thread's.
template <typename F>
__device__ void ForEach(const float* row, int cols, F f) {
#ifdef VECTOR_LOADS
  for (int c = 4 * threadIdx.x; c < cols; c += 4 * kThreads) {
    const float4 x = *reinterpret_cast<const float4*>(row + c);
    f(x.x, c);
    f(x.y, c + 1);
    f(x.z, c + 2);
    f(x.w, c + 3);
  }
#else
  for (int c = threadIdx.x; c < cols; c += kThreads) f(row[c], c);
#endif
}

// x, y: (rows, cols), cols a multiple of 4.
__global__ void Softmax(const float* x, float* y, int rows, int cols) {
  __shared__ float shared[kThreads];
  const int r = blockIdx.x * kRows + threadIdx.y;
  if (r >= rows) return;
  const float* row = x + static_cast<size_t>(r) * cols;
  float* out = y + static_cast<size_t>(r) * cols;
#ifdef ROW_IN_SHARED
  extern __shared__ float kept[];  // (cols)
  ForEach(row, cols, [&](float value, int c) { kept[c] = value; });
  row = kept;  // a thread reads what it wrote itself
#endif
  float largest = kLowest;
  float sum = 0;
#ifdef ONLINE
  ForEach(row, cols, [&](float value, int) {
    const float before = largest;
    largest = fmaxf(largest, value);
    sum = sum * Exp(before - largest) + Exp(value - largest);
  });
  const float mine = largest;
  largest = Reduce(largest, shared, Max());
  sum = Reduce(sum * Exp(mine - largest), shared, Add());
#else
  ForEach(row, cols, [&](float value, int) { largest = fmaxf(largest, value); });
  largest = Reduce(largest, shared, Max());
  ForEach(row, cols, [&](float value, int) { sum += Exp(value - largest); });
  sum = Reduce(sum, shared, Add());
#endif
#ifdef RECIPROCAL
  const float scale = 1 / sum;
  ForEach(row, cols, [&](float value, int c) { out[c] = Exp(value - largest) * scale; });
#else
  ForEach(row, cols, [&](float value, int c) { out[c] = Exp(value - largest) / sum; });
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int rows = static_cast<int>(warpledger_parameter(call, "rows"));
  const int cols = static_cast<int>(warpledger_parameter(call, "cols"));
#ifdef ROW_IN_SHARED
  const size_t shared = cols * sizeof(float);
#else
  const size_t shared = 0;
#endif
  Softmax<<<(rows + kRows - 1) / kRows, dim3(kThreads, kRows), shared,
            static_cast<cudaStream_t>(call->stream)>>>(static_cast<const float*>(call->inputs[0]),
                                                       static_cast<float*>(call->outputs[0]), rows,
                                                       cols);
  return cudaGetLastError();
}
