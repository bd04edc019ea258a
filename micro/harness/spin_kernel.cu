// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/spin_kernel.h"

namespace warpledger::harness {

__global__ void SpinKernel(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

cudaError_t LaunchSpin(int64_t cycles, cudaStream_t stream) {
  SpinKernel<<<1, 1, 0, stream>>>(cycles);
  return cudaGetLastError();
}

}  // namespace warpledger::harness
