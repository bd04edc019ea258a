// SPDX-License-Identifier: Apache-2.0
// kernels/common/cluster.cuh on the CPU.

#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void ClusterArriveRelaxed() { emulation::ArriveAtCluster(); }
inline void ClusterWait() { emulation::WaitForCluster(); }
inline void ClusterSync() {
  emulation::current->arrival_on_its_way = false;
  ClusterArriveRelaxed();
  ClusterWait();
}

// An address of the cluster's window has the CTA's rank above the bits of the CTA's own.
inline constexpr int kRankBit = 24;
inline uint32_t MapShared(uint32_t smem, uint32_t rank) { return smem | rank << kRankBit; }
inline emulation::Cta& CtaOf(uint32_t cluster_smem) {
  return *emulation::world->ctas[cluster_smem >> kRankBit];
}
inline uint32_t AddressInCta(uint32_t cluster_smem) {
  return cluster_smem & ((1u << kRankBit) - 1);
}
inline uint32_t ClusterRank() {
  const auto& ctas = emulation::world->ctas;
  uint32_t rank = 0;
  while (ctas[rank].get() != emulation::current->cta) ++rank;
  return rank;
}
template <typename T>
T LoadCluster(uint32_t cluster_smem) {
  const uint32_t address = AddressInCta(cluster_smem);
  T value;
  std::memcpy(&value, emulation::Smem(CtaOf(cluster_smem), address, sizeof(T)), sizeof(T));
  return value;
}
inline uint4 LoadCluster128(uint32_t smem) { return LoadCluster<uint4>(smem); }
inline float2 LoadClusterPair(uint32_t smem) { return LoadCluster<float2>(smem); }
inline void MbarrierArriveClusterRelaxed(uint32_t cluster_barrier) {
  emulation::Cta& cta = CtaOf(cluster_barrier);
  if (&cta != emulation::current->cta) emulation::current->arrival_on_its_way = true;
  emulation::Arrive(cta.mbarriers[AddressInCta(cluster_barrier)]);
}

// A store that completes as bytes on a barrier of the same CTA.
template <std::size_t kWords>
void StoreAsync(uint32_t cluster_smem, const uint32_t (&words)[kWords], uint32_t cluster_barrier) {
  emulation::Cta& cta = CtaOf(cluster_smem);
  if (&cta != &CtaOf(cluster_barrier)) emulation::Die("a store to another CTA than its barrier's");
  emulation::CopyBulk(cta, {AddressInCta(cluster_barrier),
                            {{emulation::Smem(cta, AddressInCta(cluster_smem), sizeof(words)),
                              emulation::Kept(words), sizeof(words)}}});
}
inline void StoreAsync128(uint32_t cluster_smem, uint4 v, uint32_t cluster_barrier) {
  StoreAsync(cluster_smem, {v.x, v.y, v.z, v.w}, cluster_barrier);
}
inline void StoreAsync32(uint32_t cluster_smem, uint32_t v, uint32_t cluster_barrier) {
  StoreAsync(cluster_smem, {v}, cluster_barrier);
}
inline void MbarrierWaitForPeers(uint32_t barrier, uint32_t parity) {
  emulation::WaitForPhase(barrier, parity);
}
inline bool ElectLane() {
  __syncwarp();
  return emulation::current->lane == 0;
}

inline void StoreShared(uint32_t address, const uint32_t (&x)[4]) {
  std::memcpy(emulation::Smem(address, sizeof(x)), x, sizeof(x));
}
inline void StoreShared(uint32_t address, float x, float y) {
  const float pair[] = {x, y};
  std::memcpy(emulation::Smem(address, sizeof(pair)), pair, sizeof(pair));
}
inline void LoadShared(uint32_t address, uint32_t (&x)[4]) {
  std::memcpy(x, emulation::Smem(address, sizeof(x)), sizeof(x));
}
inline void LaunchDependents() {}
inline void AwaitPriorKernel() {}

}  // namespace warpledger::ptx
