// SPDX-License-Identifier: Apache-2.0
// kernels/common/ptx.cuh on the CPU.

#pragma once

#include <cstdint>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void CpAsync16(uint32_t smem, const void* global, bool valid) {
  emulation::CopyAsync(smem, global, valid);
}
inline void CpAsync16(void* smem, const void* global, bool valid) {
  emulation::CopyAsync(static_cast<uint32_t>(__cvta_generic_to_shared(smem)), global, valid);
}
inline void CpAsyncCommit() { emulation::CommitCopies(); }
template <int kPending>
inline void CpAsyncWait() {
  emulation::WaitForCopies(kPending);
}
inline void CpAsyncWaitAll() {
  emulation::CommitCopies();
  emulation::WaitForCopies(0);
}
inline void StoreShared128(uint32_t smem, uint4 x) {
  std::memcpy(emulation::Smem(smem, 16), &x, 16);
}

}  // namespace warpledger::ptx
