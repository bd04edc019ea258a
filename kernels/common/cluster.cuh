// Thread block clusters: ranks, the cluster's barrier, and the shared memory of other
// CTAs of the cluster (PTX ISA, "mapa", "st.async", "barrier.cluster"). sm_90.
//
//   uint32_t theirs = ptx::MapShared(ptx::SharedAddress(buffer), ptx::ClusterRank() ^ 1);
//   ptx::ClusterSync();                     // the other CTA runs
//   uint4 v = ptx::LoadCluster128(theirs);
//   ptx::ClusterSync();                     // nobody exits while it is read

#ifndef WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_
#define WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_

#include <cstdint>

namespace warpledger::ptx {

__device__ inline uint32_t ClusterRank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The address, in the cluster's window, of what lies at `smem` in CTA `rank`.
__device__ inline uint32_t MapShared(uint32_t smem, uint32_t rank) {
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(smem), "r"(rank));
  return mapped;
}

// All threads of all CTAs of the cluster; writes before it are visible behind it.
__device__ inline void ClusterSync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

__device__ inline uint32_t LoadCluster32(uint32_t cluster_smem) {
  uint32_t v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(cluster_smem));
  return v;
}
__device__ inline uint4 LoadCluster128(uint32_t cluster_smem) {
  uint4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(cluster_smem));
  return v;
}
__device__ inline void StoreCluster128(uint32_t cluster_smem, uint4 v) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_smem), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Stores 16 bytes that complete as bytes on a barrier of the same CTA of the cluster.
__device__ inline void StoreAsync128(uint32_t cluster_smem, uint4 v, uint32_t cluster_barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];\n" ::"r"(cluster_smem),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(cluster_barrier)
      : "memory");
}

// One arrival at a barrier of any CTA of the cluster. Relaxed: it orders no ordinary
// access, for which the releasing form waits until all earlier writes are visible
// (578 cycles more in a round of multicast on an H200).
__device__ inline void MbarrierArriveClusterRelaxed(uint32_t cluster_barrier) {
  asm volatile(
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];\n" ::"r"(cluster_barrier)
      : "memory");
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_
