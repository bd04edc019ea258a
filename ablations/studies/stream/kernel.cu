// SPDX-License-Identifier: Apache-2.0
// Sixteen smoothing steps of a ring of n numbers, each of which needs the one before: small kernels
// that follow each other in a stream. The program captures them into a graph in any case.

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kSteps = 16;
constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 4;  // what an H100 or H200 holds at a time

__device__ float Smooth(float left, float x, float right) {
  return 0.25f * left + 0.5f * x + 0.25f * right;
}

__device__ float SmoothOf(const float* x, int i, int n) {
  return Smooth(x[i > 0 ? i - 1 : n - 1], x[i], x[i + 1 < n ? i + 1 : 0]);
}

#if defined(OVERLAPPING)
// All steps of a block's numbers, and of so many at both ends as they need.
__global__ void Overlapping(const float* x, float* y, int n) {
  constexpr int kWidth = kThreads + 2 * kSteps;
  __shared__ float rings[2][kWidth];
  for (int t = threadIdx.x; t < kWidth; t += kThreads) {
    const int i = blockIdx.x * kThreads + t - kSteps;
    rings[0][t] = x[i < 0 ? i + n : i < n ? i : i - n];
  }
  __syncthreads();
  for (int step = 0; step < kSteps; ++step) {
    const float* from = rings[step % 2];
    for (int t = threadIdx.x + 1; t < kWidth - 1; t += kThreads)
      rings[(step + 1) % 2][t] = Smooth(from[t - 1], from[t], from[t + 1]);
    __syncthreads();
  }
  y[blockIdx.x * kThreads + threadIdx.x] = rings[kSteps % 2][threadIdx.x + kSteps];
}
#elif defined(PERSISTENT)
// All steps, from x by way of two scratch rings (n) to y.
__global__ void AllSteps(const float* x, float* scratch, float* y, int n) {
  const auto grid = cooperative_groups::this_grid();
  for (int step = 0; step < kSteps; ++step) {
    const float* from = step == 0 ? x : scratch + (step - 1) % 2 * n;
    float* to = step == kSteps - 1 ? y : scratch + step % 2 * n;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads)
      to[i] = SmoothOf(from, i, n);
    grid.sync();
  }
}
#else
// x, y: (n), n a multiple of kThreads.
__global__ void Step(const float* x, float* y, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
#ifdef DEPENDENT_LAUNCH
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#endif
  y[i] = SmoothOf(x, i, n);
}
#endif

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  int n = static_cast<int>(warpledger_parameter(call, "n"));
  const auto stream = static_cast<cudaStream_t>(call->stream);
  const float* x = static_cast<const float*>(call->inputs[0]);
  float* scratch = static_cast<float*>(call->workspace);
  float* y = static_cast<float*>(call->outputs[0]);
  const int blocks = n / kThreads;
#if defined(OVERLAPPING)
  Overlapping<<<blocks, kThreads, 0, stream>>>(x, y, n);
  return cudaGetLastError();
#elif defined(PERSISTENT)
  void* arguments[] = {&x, &scratch, &y, &n};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&AllSteps),
                                     dim3(blocks < kMostBlocks ? blocks : kMostBlocks),
                                     dim3(kThreads), arguments, 0, stream);
#else
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
#ifdef DEPENDENT_LAUNCH
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
#endif
  for (int step = 0; step < kSteps; ++step) {
    const float* from = step == 0 ? x : scratch + (step - 1) % 2 * n;
    float* to = step == kSteps - 1 ? y : scratch + step % 2 * n;
    const cudaError_t error = cudaLaunchKernelEx(&config, Step, from, to, n);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
#endif
}
