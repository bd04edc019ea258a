// SPDX-License-Identifier: Apache-2.0
// Bulk copies by TMA (PTX ISA, "cp.async.bulk" and "cp.async.bulk.tensor").
// sm_90. One thread calls each. Shared addresses of bulk copies without a tensor map,
// their global addresses and their sizes are multiples of 16 bytes, those of swizzled
// boxes multiples of 1024.

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

// The same for the box at (x, y, z, w) of a 4-D map.
__device__ inline void TmaLoad4d(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x,
                                 int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(smem),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The same for the box at (x, y) of a 2-D map.
__device__ inline void TmaLoad2d(uint32_t smem, const CUtensorMap* map, uint32_t barrier, int x,
                                 int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];\n" ::"r"(smem),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

// The same for every CTA of the cluster whose bit is set in `ctas`: to the same offset
// of its shared memory, and completed on the barrier at the same offset.
__device__ inline void TmaLoad2dMulticast(uint32_t smem, const CUtensorMap* map, uint32_t barrier,
                                          int x, int y, uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;\n" ::"r"(smem),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x), "r"(y), "h"(ctas)
      : "memory");
}

__device__ inline void TmaLoad3dMulticast(uint32_t smem, const CUtensorMap* map, uint32_t barrier,
                                          int x, int y, int z, uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;\n" ::"r"(smem),
      "l"(reinterpret_cast<uint64_t>(map)), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(ctas)
      : "memory");
}

// Copies `bytes` from global to shared memory and completes them on `barrier`.
__device__ inline void BulkLoad(uint32_t smem, const void* global, uint32_t bytes,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(smem),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}

// Copies `bytes` of this CTA's shared memory to that of another CTA of the cluster and
// completes them on a barrier there; both are addresses of the cluster's window
// (cluster.cuh, MapShared).
__device__ inline void BulkCopyToCluster(uint32_t cluster_smem, uint32_t smem, uint32_t bytes,
                                         uint32_t cluster_barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(cluster_smem),
      "r"(smem), "r"(bytes), "r"(cluster_barrier)
      : "memory");
}

// Stores join the thread's open bulk group. Shared memory written by ordinary stores
// needs FenceProxyAsync and a barrier before them.
__device__ inline void BulkStore(void* global, uint32_t smem, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" ::"l"(global),
               "r"(smem), "r"(bytes)
               : "memory");
}
__device__ inline void TmaStore2d(const CUtensorMap* map, uint32_t smem, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(
          reinterpret_cast<uint64_t>(map)),
      "r"(smem), "r"(x), "r"(y)
      : "memory");
}
// The part of the box that lies inside the tensor.
__device__ inline void TmaStore3d(const CUtensorMap* map, uint32_t smem, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n" ::"l"(
          reinterpret_cast<uint64_t>(map)),
      "r"(smem), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void BulkCommit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
// Waits until at most `kPending` of this thread's bulk groups are unfinished …
template <int kPending>
__device__ inline void BulkWait() {
  asm volatile("cp.async.bulk.wait_group %0;\n" ::"n"(kPending) : "memory");
}
// … or have not yet read their shared memory, which may then be written again.
template <int kPending>
__device__ inline void BulkWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

// Orders this thread's ordinary accesses to shared memory before later accesses
// by TMA or wgmma (PTX ISA, "Async proxy").
__device__ inline void FenceProxyAsync() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_TMA_CUH_
