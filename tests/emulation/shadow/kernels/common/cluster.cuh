// SPDX-License-Identifier: Apache-2.0
// kernels/common/cluster.cuh on the CPU.

#pragma once

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void ClusterSync() {
  emulation::Arrive(emulation::world->cluster_barrier,
                    static_cast<int>(emulation::world->fibers.size()));
}
inline void LaunchDependents() {}
inline void AwaitPriorKernel() {}

}  // namespace warpledger::ptx
