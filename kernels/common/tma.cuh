// Bulk tensor copies by the copy engine (PTX ISA, "cp.async.bulk.tensor"). sm_90.

#ifndef WARPLEDGER_KERNELS_COMMON_TMA_CUH_
#define WARPLEDGER_KERNELS_COMMON_TMA_CUH_

#include <cuda.h>

#include <cstdint>

#include "kernels/common/mbarrier.cuh"

namespace warpledger::ptx {

__device__ inline void PrefetchTensorMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(reinterpret_cast<uint64_t>(map)) : "memory");
}

// Copies the box at (x, y, z), innermost first, of a 3-D tensor map to shared
// memory and completes its bytes on `barrier`. Parts outside the tensor arrive
// as zeros and count as bytes too. One thread.
__device__ inline void TmaLoad3d(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x,
                                 int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(smem),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// Orders this thread's ordinary accesses to shared memory before later accesses
// by the copy engine or wgmma (PTX ISA, "Async proxy").
__device__ inline void FenceProxyAsync() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_TMA_CUH_
