// SPDX-License-Identifier: Apache-2.0
// kernels/common/atomic.cuh on the CPU.

#pragma once

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline int AtomicIncrement(int* count) { return atomicAdd(count, 1); }

}  // namespace warpledger::ptx
