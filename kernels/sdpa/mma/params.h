// SPDX-License-Identifier: Apache-2.0
// The arguments of one launch of the mma family.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_

#include "kernels/sdpa/forward_params.h"

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

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PARAMS_H_
