// SPDX-License-Identifier: Apache-2.0
// kernels/common/tma.cuh on the CPU.

#pragma once

#include <cstdint>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void BulkLoad(uint32_t smem, const void* global, uint32_t bytes, uint32_t barrier) {
  emulation::CopyBulk(smem, global, bytes, barrier);
}

}  // namespace warpledger::ptx
