// SPDX-License-Identifier: Apache-2.0
// kernels/common/mbarrier.cuh on the CPU.

#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

// Of the CTA's dynamic shared memory, whatever array it is declared as.
inline uint32_t SharedAddress(const void*) { return emulation::kWindow; }
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
  emulation::Arrive(emulation::MbarrierAt(barrier), bytes);
}
inline void MbarrierArrive(uint32_t barrier) { MbarrierArriveExpectBytes(barrier, 0); }
inline void MbarrierWait(uint32_t barrier, uint32_t parity) {
  emulation::WaitForPhase(barrier, parity);
}

inline void MbarrierSpin(uint32_t barrier, uint32_t parity) { MbarrierWait(barrier, parity); }
// The copies land at once.
inline void CpAsyncMbarrierArrive(uint32_t barrier) {
  emulation::CommitCopies();
  emulation::WaitForCopies(0);
  MbarrierArrive(barrier);
}

inline void NamedBarrierSync(int id, int threads) {
  emulation::Arrive(emulation::current->cta->barriers[id], threads);
}
inline void NamedBarrierArrive(int id, int threads) {
  emulation::ArriveAndGoOn(emulation::current->cta->barriers[id], threads);
}
inline bool NamedBarrierAny(int id, int threads, bool value) {
  emulation::Barrier& barrier = emulation::current->cta->barriers[id];
  barrier.any = barrier.any || value;
  emulation::Arrive(barrier, threads);
  return barrier.voted;
}

}  // namespace warpledger::ptx
