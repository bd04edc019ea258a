// SPDX-License-Identifier: Apache-2.0
// Thread block clusters: ranks, the cluster's barrier, the shared memory of other CTAs
// of the cluster, and programmatic dependent launch (PTX ISA, "mapa", "st.async",
// "barrier.cluster", "griddepcontrol", "elect.sync"). sm_90.
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
__device__ inline float2 LoadClusterPair(uint32_t cluster_smem) {
  float2 v;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
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

// The same of 4 bytes.
__device__ inline void StoreAsync32(uint32_t cluster_smem, uint32_t v, uint32_t cluster_barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];\n" ::"r"(
                   cluster_smem),
               "r"(v), "r"(cluster_barrier)
               : "memory");
}

// Waits, as MbarrierWait does, for a phase that StoreAsync128 or StoreAsync32 of other CTAs
// completes: what they stored in this CTA's shared memory is visible behind it. An acquire of the
// whole cluster's scope would invalidate L1 too (CCTL.IVALL), for global memory that nobody asked
// about; this fence is of shared memory alone (PTX ISA, "membar/fence", .sync_restrict) and costs
// nothing.
__device__ inline void MbarrierWaitForPeers(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "wait:\n"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra wait;\n"
      "finished:\n"
      "fence.acquire.sync_restrict::shared::cluster.cluster;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
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

// Every thread of the cluster arrives once and waits once. The arrival orders no
// memory: with release semantics it takes more than a thousand cycles while copies are
// in flight. Barriers that peers signal are made visible by MbarrierInitFence before.
__device__ inline void ClusterArriveRelaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}
__device__ inline void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

__device__ inline void StoreShared(uint32_t address, const uint32_t (&x)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}
__device__ inline void StoreShared(uint32_t address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(address), "f"(x), "f"(y) : "memory");
}
__device__ inline void LoadShared(uint32_t address, uint32_t (&x)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}

// One lane of a whole warp: true there alone.
__device__ inline bool ElectLane() {
  uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(elected));
  return elected != 0;
}

// Lets the next kernel of the stream start its CTAs where there is room. Without the
// launch attribute both do nothing.
__device__ inline void LaunchDependents() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}
// Waits until the kernel before has ended and its writes are visible.
__device__ inline void AwaitPriorKernel() { asm volatile("griddepcontrol.wait;\n" ::: "memory"); }

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_
