// SPDX-License-Identifier: Apache-2.0
// kernels/common/cluster.cuh on the CPU.

#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void ClusterSync() {
  emulation::Arrive(emulation::world->cluster_barrier,
                    static_cast<int>(emulation::world->fibers.size()));
}
inline void StoreShared(uint32_t address, const uint32_t (&x)[4]) {
  std::memcpy(emulation::Smem(address, sizeof(x)), x, sizeof(x));
}
inline void LoadShared(uint32_t address, uint32_t (&x)[4]) {
  std::memcpy(x, emulation::Smem(address, sizeof(x)), sizeof(x));
}
inline void LaunchDependents() {}
inline void AwaitPriorKernel() {}

}  // namespace warpledger::ptx
