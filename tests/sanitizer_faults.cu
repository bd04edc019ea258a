// SPDX-License-Identifier: Apache-2.0
// One fault for each tool of compute-sanitizer, which tests/sanitizers.py has it find before it
// believes a clean run.
//
//   sanitizer_faults memcheck|racecheck|initcheck|synccheck
//
// Exit codes: 0 the fault was committed (which nobody but a tool notices, or a tool stopped it),
// 2 wrong use, 3 no GPU.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr int kThreads = 64;

// memcheck: a read of one element behind an allocation.
__global__ void ReadBehind(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 1]; }

// initcheck: a read of global memory that nobody wrote. Made, not found: no element is written.
__global__ void ReadUnwritten(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }

// racecheck: threads of two warps write and read shared memory without a barrier between them.
__global__ void Race(int* out) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

// synccheck: a barrier for all that a warp's half does not reach.
__global__ void DivergentBarrier(int* out) {
  if (threadIdx.x % 32 < 16) __syncthreads();
  out[threadIdx.x] = 0;
}

int Commit(const char* tool) {
  int* in = nullptr;
  int* out = nullptr;
  if (cudaMalloc(&in, kThreads * sizeof(int)) != cudaSuccess ||
      cudaMalloc(&out, kThreads * sizeof(int)) != cudaSuccess) {
    std::fprintf(stderr, "sanitizer_faults: no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 3;
  }
  if (std::strcmp(tool, "memcheck") == 0) {
    cudaMemset(in, 0, kThreads * sizeof(int));
    ReadBehind<<<1, kThreads>>>(in, out);
  } else if (std::strcmp(tool, "racecheck") == 0) {
    Race<<<1, kThreads>>>(out);
  } else if (std::strcmp(tool, "initcheck") == 0) {
    ReadUnwritten<<<1, kThreads>>>(in, out);
  } else if (std::strcmp(tool, "synccheck") == 0) {
    DivergentBarrier<<<1, kThreads>>>(out);
  } else {
    std::fprintf(stderr, "sanitizer_faults: no fault for '%s'\n", tool);
    return 2;
  }
  cudaDeviceSynchronize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sanitizer_faults memcheck|racecheck|initcheck|synccheck\n");
    return 2;
  }
  return Commit(argv[1]);
}
