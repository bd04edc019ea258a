// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/clock_probe.h"

namespace warpledger::harness {

__global__ void ClockStampKernel(ClockStamp* stamps) {
  ClockStamp stamp;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(stamp.sm));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(stamp.cycles));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(stamp.ns));
  stamps[blockIdx.x] = stamp;
}

cudaError_t LaunchClockStamps(ClockStamp* stamps, int count, cudaStream_t stream) {
  ClockStampKernel<<<count, 1, 0, stream>>>(stamps);
  return cudaGetLastError();
}

}  // namespace warpledger::harness
