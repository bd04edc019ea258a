// kernels/common/mbarrier.cuh on the CPU.

#ifndef WARPLEDGER_TESTS_EMULATION_SHADOW_KERNELS_COMMON_MBARRIER_CUH_
#define WARPLEDGER_TESTS_EMULATION_SHADOW_KERNELS_COMMON_MBARRIER_CUH_

#include <cstdint>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

// Kernels that use an mbarrier itself do not run here.
uint32_t SharedAddress(const void* smem);
void MbarrierInit(uint32_t barrier, uint32_t arrivals);
void MbarrierArrive(uint32_t barrier);
void MbarrierSpin(uint32_t barrier, uint32_t parity);
void CpAsyncMbarrierArrive(uint32_t barrier);

inline void NamedBarrierSync(int id, int threads) {
  emulation::Arrive(emulation::current->cta->barriers[id], threads);
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_TESTS_EMULATION_SHADOW_KERNELS_COMMON_MBARRIER_CUH_
