// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/gpu/compare_kernels.h"

namespace warpledger::ablations {
namespace {

constexpr int kThreads = 256;
constexpr int kCtas = 1024;

__device__ void AddOfWarp(unsigned long long found, unsigned long long* count) {
  for (int lane = 16; lane > 0; lane /= 2) found += __shfl_xor_sync(0xffffffffu, found, lane);
  if (threadIdx.x % 32 == 0 && found > 0) atomicAdd(count, found);
}

__global__ void CountDifferences(const uint4* a, const uint4* b, size_t words,
                                 unsigned long long* count) {
  unsigned long long found = 0;
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < words;
       i += size_t{kCtas} * kThreads) {
    const uint4 x = a[i];
    const uint4 y = b[i];
    found += x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w ? 1 : 0;
  }
  AddOfWarp(found, count);
}

__global__ void CountOthers(const unsigned char* data, size_t bytes, unsigned char value,
                            unsigned long long* count) {
  unsigned long long found = 0;
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < bytes;
       i += size_t{kCtas} * kThreads) {
    found += data[i] != value ? 1 : 0;
  }
  AddOfWarp(found, count);
}

}  // namespace

cudaError_t LaunchCountDifferences(const void* a, const void* b, size_t bytes,
                                   unsigned long long* count, cudaStream_t stream) {
  CountDifferences<<<kCtas, kThreads, 0, stream>>>(
      static_cast<const uint4*>(a), static_cast<const uint4*>(b), bytes / sizeof(uint4), count);
  return cudaGetLastError();
}

cudaError_t LaunchCountOthers(const void* data, size_t bytes, unsigned char value,
                              unsigned long long* count, cudaStream_t stream) {
  CountOthers<<<kCtas, kThreads, 0, stream>>>(static_cast<const unsigned char*>(data), bytes, value,
                                              count);
  return cudaGetLastError();
}

}  // namespace warpledger::ablations
