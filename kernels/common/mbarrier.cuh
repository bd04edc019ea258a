// SPDX-License-Identifier: Apache-2.0
// mbarrier and named barriers (PTX ISA, "Parallel Synchronization and
// Communication Instructions"). Where sm_90 is needed, the code for older GPUs traps:
// callers see to it that it never runs there.

#ifndef WARPLEDGER_KERNELS_COMMON_MBARRIER_CUH_
#define WARPLEDGER_KERNELS_COMMON_MBARRIER_CUH_

#include <cstdint>

namespace warpledger::ptx {

// Barriers and tiles are named by their address in the shared window: 32 bits, half
// of the registers that a generic pointer takes.
__device__ inline uint32_t SharedAddress(const void* smem) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(smem));
}

__device__ inline void StoreShared(uint32_t address, int value) {
  asm volatile("st.shared.s32 [%0], %1;\n" ::"r"(address), "r"(value) : "memory");
}
__device__ inline int LoadShared(uint32_t address) {
  int value;
  asm volatile("ld.shared.s32 %0, [%1];\n" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// mbarrier.init: `arrivals` arrivals complete a phase. One thread; then
// MbarrierInitFence and a CTA barrier before anyone else uses it.
__device__ inline void MbarrierInit(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}

// Makes initialised barriers visible to TMA.
__device__ inline void MbarrierInitFence() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
#else
  __trap();
#endif
}

// One arrival that also announces `bytes` which copies will complete.
__device__ inline void MbarrierArriveExpectBytes(uint32_t barrier, uint32_t bytes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
#else
  __trap();
#endif
}

__device__ inline void MbarrierArrive(uint32_t barrier) {  // sm_80
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

// Whether the phase of the given parity has completed; may first suspend the thread for a
// time that the hardware chooses.
__device__ inline bool MbarrierTryWait(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
#else
  __trap();
#endif
  return done != 0;
}

// Waits until the phase of the given parity has completed. A fresh barrier is in
// phase 0: waiting for parity 1 returns at once.
__device__ inline void MbarrierWait(uint32_t barrier, uint32_t parity) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "wait:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra wait;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
#else
  __trap();
#endif
}

// MbarrierWait for sm_80 too, which has no wait that suspends the thread.
__device__ inline void MbarrierSpin(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

// cp.async.mbarrier.arrive.noinc (sm_80): one arrival once all of this thread's copies
// so far have landed, counted among those that the barrier was initialised with.
__device__ inline void CpAsyncMbarrierArrive(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(barrier) : "memory");
}

// bar.sync / bar.arrive on barrier `id` (1..15; 0 is __syncthreads) among `threads`.
__device__ inline void NamedBarrierSync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
// Whether `value` is true in any of the threads.
__device__ inline bool NamedBarrierAny(int id, int threads, bool value) {
  int any;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.s32 p, %3, 0;\n"
      "barrier.cta.red.or.pred q, %1, %2, p;\n"
      "selp.s32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(static_cast<int>(value))
      : "memory");
  return any != 0;
}
__device__ inline void NamedBarrierArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_MBARRIER_CUH_
