// SPDX-License-Identifier: Apache-2.0
// The arguments of one launch of the mma family, and the memory that an instance has for itself.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_

#include <cstddef>
#include <type_traits>

#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/shared/forward_params.h"
#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/shared/sequence_plan.h"

namespace warpledger::sdpa {

// Most CTAs of one launch that write partial outputs: two on each of 148 SMs and to
// spare. The partial outputs are the instance's own static memory, so that a
// launch allocates nothing and can be captured into a graph.
inline constexpr int kMaxPartials = 320;
inline constexpr int kMaxSplits = 64;

struct MmaParams {
  ForwardParams forward;
  int group_size = 1;              // query heads that share a K/V head
  int heads = 1;                   // of tiles: query heads over the batch, or K/V heads when packed
  int rows = 1;                    // of queries per head: seq_q, times group_size when packed
  int query_tiles = 1;             // per head
  int tiles = 1;                   // in all
  int heads_in_flight = 1;         // heads whose tiles are handed out together, for L2
  int splits = 1;                  // CTAs that share a tile's keys
  float* partial_out = nullptr;    // (tiles, splits, tile_m, head_dim)
  float* partial_stats = nullptr;  // (tiles, splits, tile_m, 2): maximum and sum
  int* arrivals = nullptr;         // (tiles): splits done; 0 before and after a launch
  int* next_tile = nullptr;        // of the dynamic schedule; 0 before and after a launch
};

// What only strided shapes take is apart, so that the parameters of all others are as they were.
struct MmaStridedParams : MmaParams {
  TensorStrides q;
  TensorStrides k;
  TensorStrides v;
  TensorStrides o;
};
// Where sequences lie one behind another: their blocks of queries, as the plan lists them.
struct MmaVarlenParams : MmaStridedParams {
  const SequenceBlock* blocks = nullptr;
  const int* block_count = nullptr;
  int64_t lse_head_stride = 0;
};
template <MmaShape kShape>
using MmaParamsOf =
    std::conditional_t<kShape.varlen, MmaVarlenParams,
                       std::conditional_t<kShape.strided, MmaStridedParams, MmaParams>>;

// --- An instance's own global memory: what outlives a CTA. Counters are 0 between launches ---

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

// A strided instance has none: only the library launches it, and passes memory of the caller's.
constexpr size_t OwnWorkspaceBytes(const MmaShape& shape) {
  return shape.strided ? 1 : WorkspaceOf(shape).bytes;
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

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_
