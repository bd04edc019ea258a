// SPDX-License-Identifier: Apache-2.0
// kernels/common/mbarrier.cuh on the CPU.

#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

// What only producers of tiles use, which do not run here.
uint32_t SharedAddress(const void* smem);
void MbarrierSpin(uint32_t barrier, uint32_t parity);
void CpAsyncMbarrierArrive(uint32_t barrier);

inline void MbarrierInit(uint32_t barrier, uint32_t arrivals) {
  emulation::MbarrierAt(barrier) = {.arrivals = arrivals, .pending = arrivals};
}
inline void MbarrierInitFence() {}
inline void StoreShared(uint32_t address, int value) {
  std::memcpy(emulation::Smem(address, sizeof(value)), &value, sizeof(value));
}
inline int LoadShared(uint32_t address) {
  int value;
  std::memcpy(&value, emulation::Smem(address, sizeof(value)), sizeof(value));
  return value;
}
inline void MbarrierArriveExpectBytes(uint32_t barrier, uint32_t bytes) {
  emulation::Mbarrier& b = emulation::MbarrierAt(barrier);
  if (b.pending == 0) emulation::Die("an arrival too many at an mbarrier");
  --b.pending;
  b.bytes += bytes;
  emulation::CompletePhase(b);
}
inline void MbarrierArrive(uint32_t barrier) { MbarrierArriveExpectBytes(barrier, 0); }
inline void MbarrierWait(uint32_t barrier, uint32_t parity) {
  emulation::WaitForPhase(barrier, parity);
}

inline void NamedBarrierSync(int id, int threads) {
  emulation::Arrive(emulation::current->cta->barriers[id], threads);
}

}  // namespace warpledger::ptx
