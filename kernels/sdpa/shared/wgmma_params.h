// SPDX-License-Identifier: Apache-2.0
// The arguments of one launch, as every kernel takes them whose K and V come by tensor maps.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_WGMMA_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_WGMMA_PARAMS_H_

#include <cuda.h>

namespace warpledger::sdpa {

// Tensor maps are 3-D: (head_dim, seq, batch * heads), boxes of 128 bytes by a tile's rows,
// of K and V with multicast by the share of them that each CTA asks for; 128-byte swizzle.
// That of Q with packed heads is 4-D: (head_dim, heads of the group, seq, batch * K/V heads).
// Passed by value, as TMA needs them in parameter space.
struct WgmmaParams {
  CUtensorMap q;
  CUtensorMap k;
  CUtensorMap v;
  void* o = nullptr;     // (batch, heads_q, seq_q, head_dim) fp16 or bf16
  float* lse = nullptr;  // (batch, heads_q, seq_q) fp32, or null
  int heads = 1;         // of tiles, over the whole batch: query heads, or K/V heads when packed
  int group_size = 1;    // query heads that share a K/V head
  int seq_q = 1;
  int seq_kv = 1;
  int* next_tile = nullptr;  // counter of the dynamic schedule: 0 before and after a launch
  int query_tiles = 1;       // per head
  int heads_in_flight = 1;   // heads whose tiles are handed out together
  float softmax_scale = 1.0f;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_WGMMA_PARAMS_H_
