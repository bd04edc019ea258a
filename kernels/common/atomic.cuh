// SPDX-License-Identifier: Apache-2.0
// Atomics of an order that CUDA's own functions don't have (PTX ISA, "atom").

#ifndef WARPLEDGER_KERNELS_COMMON_ATOMIC_CUH_
#define WARPLEDGER_KERNELS_COMMON_ATOMIC_CUH_

namespace warpledger::ptx {

// Adds 1 to `count` in global memory and returns what it was. A thread that increments it later, in
// the same way, sees what this thread has written, and what other threads had written before a
// barrier that this thread passed.
// Fences around an atomicAdd() are sequentially consistent, which takes longer.
__device__ inline int AtomicIncrement(int* count) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;\n"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(count))
               : "memory");
  return before;
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_ATOMIC_CUH_
