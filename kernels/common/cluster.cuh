// Clusters of CTAs: barriers, addresses and stores in a peer's shared memory, and
// programmatic dependent launch (PTX ISA, "barrier.cluster", "mapa", "st.async",
// "griddepcontrol", "elect.sync"). sm_90.

#ifndef WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_
#define WARPLEDGER_KERNELS_COMMON_CLUSTER_CUH_

#include <cstdint>

namespace warpledger::ptx {

// Every thread of the cluster arrives once and waits once. The arrival orders no
// memory: with release semantics it takes more than a thousand cycles while copies are
// in flight. Barriers that peers signal are made visible by MbarrierInitFence before.
__device__ inline void ClusterArriveRelaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}
__device__ inline void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

// The address of `smem`, of this CTA, in the shared memory of CTA `rank` of the cluster.
__device__ inline uint32_t PeerAddress(uint32_t smem, uint32_t rank) {
  uint32_t peer;
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(peer) : "r"(smem), "r"(rank));
  return peer;
}

// Stores 16 bytes in a peer's shared memory and completes them on a barrier of the
// same peer; both by PeerAddress. The kernel must have been launched with clusters.
__device__ inline void StorePeer(uint32_t address, uint32_t barrier, const uint32_t (&x)[4]) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %3, %4, %5}, "
      "[%1];\n" ::"r"(address),
      "r"(barrier), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
      : "memory");
}
__device__ inline void StoreShared(uint32_t address, const uint32_t (&x)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
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
