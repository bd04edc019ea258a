// SPDX-License-Identifier: Apache-2.0
// The arguments of one launch of the wgmma family.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_

#include <cuda.h>
#include <vector_types.h>

#include <type_traits>

#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// Tensor maps are 3-D: (head_dim, seq, batch * heads), boxes of 128 bytes by a tile's rows,
// of K and V with multicast by the share of them that each CTA asks for; 128-byte swizzle.
// That of Q with packed heads is 4-D: (head_dim, heads of the group, seq, batch * K/V heads).
// Passed by value, as the copy engine needs them in parameter space.
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

// Where O leaves by the copy engine: its map too, of boxes of one warpgroup's rows.
// Apart, so that the other kernels' parameters stay short.
struct WgmmaStoreParams : WgmmaParams {
  CUtensorMap o_map;
};

// Where Q, K and V are 8-bit: the scales too. O's map is filled in if the kernel takes it.
struct WgmmaFp8Params : WgmmaStoreParams {
  const float* q_scales = nullptr;  // (batch * heads_q)
  const float* k_scales = nullptr;  // (batch * heads_kv, scale_stride), as in forward_params.h
  const float* v_scales = nullptr;  // the same
  int scale_stride = 1;
};

// Where K and V come without the copy engine: the tensors themselves.
struct WgmmaCopyParams : WgmmaParams {
  const void* k_rows =
      nullptr;  // (batch, heads_kv, seq_kv, head_dim) fp16 or bf16, 16-byte aligned
  const void* v_rows = nullptr;
};

// Most CTAs of one launch that leave parts of outputs: one on each SM and to spare. The parts
// lie in the instance's own static memory, so that a launch allocates nothing and can be
// captured into a graph.
inline constexpr int kMaxWgmmaPartials = 160;
inline constexpr int kMaxWgmmaSplits = 64;
// The largest cluster of sm_90, beyond the eight that are portable.
inline constexpr int kMaxClusterSplits = 16;

// Where a tile holds rows of several heads, or several CTAs share its keys.
struct WgmmaDecodeParams : WgmmaParams {
  int positions = 1;  // of each of its heads, that a tile of queries holds
  int splits = 1;     // CTAs that share a tile's keys
  // (tiles, splits, tile_m, head_dim) fp32, not yet divided; with a kernel that joins (splits,
  // batch, heads_q, seq_q, head_dim)
  float4* partial_out = nullptr;
  float2* partial_stats = nullptr;  // without head_dim: maximum of raw scores, sum
  int* arrivals = nullptr;          // (tiles): parts done; 0 before and after a launch
};

// Which of these a kernel takes.
enum class WgmmaParamsKind { kPlain, kStore, kFp8, kCopy, kDecode };
constexpr WgmmaParamsKind ParamsKindOf(const WgmmaShape& shape) {
  return shape.fp8                            ? WgmmaParamsKind::kFp8
         : shape.tma_store                    ? WgmmaParamsKind::kStore
         : shape.cp_async                     ? WgmmaParamsKind::kCopy
         : shape.pack_heads || shape.split_kv ? WgmmaParamsKind::kDecode
                                              : WgmmaParamsKind::kPlain;
}

template <WgmmaShape kShape, WgmmaParamsKind kKind = ParamsKindOf(kShape)>
using WgmmaParamsOf = std::conditional_t<
    kKind == WgmmaParamsKind::kFp8, WgmmaFp8Params,
    std::conditional_t<kKind == WgmmaParamsKind::kStore, WgmmaStoreParams,
                       std::conditional_t<kKind == WgmmaParamsKind::kCopy, WgmmaCopyParams,
                                          std::conditional_t<kKind == WgmmaParamsKind::kDecode,
                                                             WgmmaDecodeParams, WgmmaParams>>>>;

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_
