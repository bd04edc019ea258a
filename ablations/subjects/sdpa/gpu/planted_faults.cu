// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "ablations/subjects/sdpa/gpu/planted_fault_kernels.h"

namespace warpledger::ablations {
namespace {

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void CommitFault(Fault fault, unsigned char* behind_output) {
  // Far behind everything that a GPU of today could have mapped next to us.
  constexpr uint64_t kFarAway = uint64_t{1} << 40;
  switch (fault) {
    case Fault::kNone:
      return;
    case Fault::kTrap:
      __trap();
    case Fault::kSpin: {
      const uint64_t end = NowNs() + uint64_t{kSpinSeconds} * 1'000'000'000;
      while (NowNs() < end) {
      }
      return;
    }
    case Fault::kWriteOutside:
      *behind_output = 0;
      return;
    case Fault::kWriteUnmapped:
      *reinterpret_cast<volatile unsigned char*>(reinterpret_cast<uint64_t>(behind_output) +
                                                 kFarAway) = 0;
      return;
  }
}

}  // namespace

cudaError_t LaunchPlantedFault(Fault fault, void* behind_output, cudaStream_t stream) {
  CommitFault<<<1, 1, 0, stream>>>(fault, static_cast<unsigned char*>(behind_output));
  return cudaGetLastError();
}

}  // namespace warpledger::ablations
