// SPDX-License-Identifier: Apache-2.0
// An instance's own global memory: what outlives a CTA. Counters are 0 between launches.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_WORKSPACE_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_WORKSPACE_H_

#include <cstddef>

#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// Offsets in bytes; each part is aligned to 16 bytes or to its elements.
struct MmaWorkspace {
  size_t partial_out = 0;
  size_t partial_stats = 0;
  size_t arrivals = 0;
  size_t next_tile = 0;
  size_t bytes = 0;
};

constexpr MmaWorkspace WorkspaceOf(const MmaShape& shape) {
  const size_t partials = shape.split_kv ? kMaxPartials : 1;
  const size_t rows = partials * static_cast<size_t>(TileM(shape));
  MmaWorkspace w;
  w.partial_stats = rows * static_cast<size_t>(shape.head_dim) * sizeof(float);
  w.arrivals = w.partial_stats + rows * 2 * sizeof(float);
  w.next_tile = w.arrivals + partials * sizeof(int);
  w.bytes = w.next_tile + sizeof(int);
  return w;
}

// Sets the parameters that point into the workspace at `base`, 16-byte aligned device memory.
inline void AddWorkspace(const MmaShape& shape, std::byte* base, MmaParams* params) {
  const MmaWorkspace w = WorkspaceOf(shape);
  params->partial_out = reinterpret_cast<float*>(base + w.partial_out);
  params->partial_stats = reinterpret_cast<float*>(base + w.partial_stats);
  params->arrivals = reinterpret_cast<int*>(base + w.arrivals);
  params->next_tile = reinterpret_cast<int*>(base + w.next_tile);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_WORKSPACE_H_
