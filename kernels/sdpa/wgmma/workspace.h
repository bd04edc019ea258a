// SPDX-License-Identifier: Apache-2.0
// An instance's own global memory: what outlives a CTA. Counters are 0 between launches.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_WORKSPACE_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_WORKSPACE_H_

#include <cstddef>

#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// Offsets in bytes. Only instances that split K and V have partial results, and those that keep
// them in shared memory have none here.
struct WgmmaWorkspace {
  size_t partial_out = 0;
  size_t partial_stats = 0;
  size_t counters = 0;  // arrivals, or the next tile of the dynamic schedule
  size_t bytes = 0;
};

constexpr WgmmaWorkspace WorkspaceOf(const WgmmaShape& shape) {
  if (!shape.split_kv) return {.bytes = sizeof(int)};
  const size_t rows =
      shape.cluster_join ? 1 : kMaxWgmmaPartials * static_cast<size_t>(TileM(shape));
  WgmmaWorkspace w;
  w.partial_stats = rows * static_cast<size_t>(shape.head_dim) * sizeof(float);
  w.counters = w.partial_stats + rows * 2 * sizeof(float);
  w.bytes = w.counters + kMaxWgmmaPartials * sizeof(int);
  return w;
}

// Sets the parameters that point into the workspace at `base`, 16-byte aligned device memory.
inline void AddWorkspace(const WgmmaShape&, std::byte* base, WgmmaParams* params) {
  params->next_tile = reinterpret_cast<int*>(base);
}
inline void AddWorkspace(const WgmmaShape& shape, std::byte* base, WgmmaDecodeParams* params) {
  if (!shape.split_kv) return AddWorkspace(shape, base, static_cast<WgmmaParams*>(params));
  const WgmmaWorkspace w = WorkspaceOf(shape);
  params->partial_out = reinterpret_cast<float4*>(base + w.partial_out);
  params->partial_stats = reinterpret_cast<float2*>(base + w.partial_stats);
  params->arrivals = reinterpret_cast<int*>(base + w.counters);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_WORKSPACE_H_
