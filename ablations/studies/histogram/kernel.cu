// SPDX-License-Identifier: Apache-2.0
// How often each of 256 values occurs. Numbers from 0 to 1 are spread over `spread` of the bins;
// 1 itself, which few are after rounding, falls into the next one or the last.

#include <cuda_runtime.h>
#include <warpledger/study.h>

namespace {

constexpr int kBins = 256;
constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kMostBlocks = 1024;  // where a thread takes many numbers

#ifdef COPIES
constexpr int kCopies = kThreads / kWarp;  // one for each warp
#else
constexpr int kCopies = 1;
#endif

// Adds one to a bin for each thread that calls it.
__device__ void Count(int* bins, int bin) {
#ifdef WARP_AGGREGATED
  const unsigned peers = __match_any_sync(__activemask(), bin);
  if (__ffs(peers) - 1 == static_cast<int>(threadIdx.x % kWarp))
    atomicAdd(bins + bin, __popc(peers));
#else
  atomicAdd(bins + bin, 1);
#endif
}

// Counts runs of a bin before it adds them.
class Runs {
 public:
  __device__ void Take(int* bins, int bin) {
    if (bin == bin_) {
      ++count_;
      return;
    }
    Flush(bins);
    bin_ = bin;
    count_ = 1;
  }
  __device__ void Flush(int* bins) const {
    if (count_ > 0) atomicAdd(bins + bin_, count_);
  }

 private:
  int bin_ = -1;
  int count_ = 0;
};

// x: (n), counts: (kBins), zero before.
__global__ void Histogram(const float* x, int* counts, int n, float spread) {
#ifdef PRIVATISED
  __shared__ int shared[kCopies * kBins];
  for (int i = threadIdx.x; i < kCopies * kBins; i += kThreads) shared[i] = 0;
  __syncthreads();
  int* const bins = shared + threadIdx.x / kWarp % kCopies * kBins;
#else
  int* const bins = counts;
#endif
#ifdef RUNS
  Runs runs;
#endif
  const auto take = [&](float value) {
    const int bin = min(static_cast<int>(value * spread), kBins - 1);
#ifdef RUNS
    runs.Take(bins, bin);
#else
    Count(bins, bin);
#endif
  };
  const int first = blockIdx.x * kThreads + threadIdx.x;
#if defined(VECTOR_LOADS)
  for (int i = first; i < n / 4; i += gridDim.x * kThreads) {
    const float4 four = reinterpret_cast<const float4*>(x)[i];
    take(four.x);
    take(four.y);
    take(four.z);
    take(four.w);
  }
#elif defined(MANY_PER_THREAD)
  for (int i = first; i < n; i += gridDim.x * kThreads) take(x[i]);
#else
  if (first < n) take(x[first]);
#endif
#ifdef RUNS
  runs.Flush(bins);
#endif
#ifdef PRIVATISED
  __syncthreads();
  int sum = 0;
  for (int copy = 0; copy < kCopies; ++copy) sum += shared[copy * kBins + threadIdx.x];
  if (sum > 0) atomicAdd(counts + threadIdx.x, sum);
#endif
}

}  // namespace

// n is a multiple of 4.
extern "C" int warpledger_call(const WarpledgerCall* call) {
  const int n = static_cast<int>(warpledger_parameter(call, "n"));
  const auto stream = static_cast<cudaStream_t>(call->stream);
  int* counts = static_cast<int*>(call->outputs[0]);
  cudaMemsetAsync(counts, 0, kBins * sizeof(int), stream);
  int blocks = (n + kThreads - 1) / kThreads;
#ifdef MANY_PER_THREAD
  if (blocks > kMostBlocks) blocks = kMostBlocks;
#endif
  Histogram<<<blocks, kThreads, 0, stream>>>(
      static_cast<const float*>(call->inputs[0]), counts, n,
      static_cast<float>(warpledger_parameter(call, "spread")));
  return cudaGetLastError();
}
