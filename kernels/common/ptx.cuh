// SPDX-License-Identifier: Apache-2.0
// Thin wrappers over PTX instructions that CUDA C++ has no name for.
// Each names its section of the PTX ISA; none of them hides a barrier.

#ifndef WARPLEDGER_KERNELS_COMMON_PTX_CUH_
#define WARPLEDGER_KERNELS_COMMON_PTX_CUH_

#include <cstdint>

namespace warpledger::ptx {

// cp.async.cg (PTX ISA, "Data Movement: cp.async"; sm_80): copies 16 bytes from
// global to shared memory past L1 and the registers. With `valid` false nothing
// is read and the 16 bytes are zero-filled. Both addresses are 16-byte aligned.
__device__ inline void CpAsync16(void* smem, const void* global, bool valid) {
  const auto dst = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  const int source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(global),
               "r"(source_bytes)
               : "memory");
}

// The same to an address in the shared window, asking L2 for the whole 128-byte line.
__device__ inline void CpAsync16(uint32_t smem, const void* global, bool valid) {
  const int source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(smem), "l"(global),
               "r"(source_bytes)
               : "memory");
}

// 16 bytes to a 16-byte aligned address in the shared window.
__device__ inline void StoreShared128(uint32_t smem, uint4 x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(smem), "r"(x.x), "r"(x.y),
               "r"(x.z), "r"(x.w)
               : "memory");
}

// cp.async.commit_group: closes the group of this thread's copies since the last.
__device__ inline void CpAsyncCommit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// cp.async.wait_group: waits until at most `kPending` of this thread's groups
// are unfinished. Other threads' copies need a barrier on top.
template <int kPending>
__device__ inline void CpAsyncWait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// cp.async.wait_all: waits for all of this thread's copies, committed or not.
__device__ inline void CpAsyncWaitAll() { asm volatile("cp.async.wait_all;\n" ::: "memory"); }

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_PTX_CUH_
