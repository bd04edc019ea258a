// SPDX-License-Identifier: Apache-2.0
// The arguments of one launch of the wgmma family, and the memory that an instance has for itself.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "kernels/sdpa/shared/kernel_layout.h"
#include "kernels/sdpa/shared/sequence_plan.h"
#include "kernels/sdpa/shared/wgmma_params.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// Where O leaves by TMA: its map too, of boxes of one warpgroup's rows.
// Apart, so that the other kernels' parameters stay short.
struct WgmmaStoreParams : WgmmaParams {
  CUtensorMap o_map;
};

// Where a head's K stays for all its tiles of queries. O's map is filled in if the kernel takes it.
struct WgmmaKeepParams : WgmmaStoreParams {
  int tiles_at_once = 1;  // of queries of a head, that a CTA takes with one copy of K
};

// Where sequences lie one behind another: their blocks of queries, as the plan lists them. The maps
// of Q, K, V and O have all rows of a head in one dimension, and seq_q, seq_kv, query_tiles and
// heads_in_flight say nothing.
struct WgmmaVarlenParams : WgmmaStoreParams {
  const SequenceBlock* blocks = nullptr;
  const int* block_count = nullptr;
  int64_t o_row_stride = 0;  // elements
  int64_t o_head_stride = 0;
  int64_t lse_head_stride = 0;
};

// Where Q, K and V are 8-bit: the scales too. O's map is filled in if the kernel takes it.
struct WgmmaFp8Params : WgmmaStoreParams {
  const float* q_scales = nullptr;  // (batch * heads_q)
  const float* k_scales = nullptr;  // (batch * heads_kv, scale_stride), as in forward_params.h
  const float* v_scales = nullptr;  // the same
  int scale_stride = 1;
};

// The same where the caller's scales are read as they are, in place of scale_stride.
struct WgmmaScaledParams : WgmmaFp8Params {
  ScaleStrides scale_strides;
};

// Where O is 8-bit too: one scale of it.
struct WgmmaFp8OutputParams : WgmmaFp8Params {
  const float* o_scale = nullptr;
};

// The same where O's rows lie as the caller has them.
struct WgmmaScaledOutputParams : WgmmaScaledParams {
  const float* o_scale = nullptr;
  TensorStrides o_strides;
  int heads_of_batch = 1;
};

// Where K and V come without TMA: the tensors themselves.
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
enum class WgmmaParamsKind {
  kPlain,
  kStore,
  kKeep,
  kVarlen,
  kFp8,
  kFp8Output,
  kScaled,
  kScaledOutput,
  kCopy,
  kDecode
};
constexpr WgmmaParamsKind ParamsKindOf(const WgmmaShape& shape) {
  return StridedOutput(shape)                 ? WgmmaParamsKind::kScaledOutput
         : shape.scale_strides                ? WgmmaParamsKind::kScaled
         : shape.fp8_output                   ? WgmmaParamsKind::kFp8Output
         : shape.fp8                          ? WgmmaParamsKind::kFp8
         : shape.varlen                       ? WgmmaParamsKind::kVarlen
         : shape.keep_k                       ? WgmmaParamsKind::kKeep
         : shape.tma_store                    ? WgmmaParamsKind::kStore
         : shape.cp_async                     ? WgmmaParamsKind::kCopy
         : shape.pack_heads || shape.split_kv ? WgmmaParamsKind::kDecode
                                              : WgmmaParamsKind::kPlain;
}

template <WgmmaParamsKind>
struct WgmmaParamsOfKind {
  using Type = WgmmaParams;
};
// clang-format off
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kStore> { using Type = WgmmaStoreParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kKeep> { using Type = WgmmaKeepParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kVarlen> { using Type = WgmmaVarlenParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kFp8> { using Type = WgmmaFp8Params; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kFp8Output> { using Type = WgmmaFp8OutputParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kScaled> { using Type = WgmmaScaledParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kScaledOutput> { using Type = WgmmaScaledOutputParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kCopy> { using Type = WgmmaCopyParams; };
template <> struct WgmmaParamsOfKind<WgmmaParamsKind::kDecode> { using Type = WgmmaDecodeParams; };
// clang-format on

template <WgmmaShape kShape>
using WgmmaParamsOf = typename WgmmaParamsOfKind<ParamsKindOf(kShape)>::Type;

// --- An instance's own global memory: what outlives a CTA. Counters are 0 between launches ---

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

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_PARAMS_H_
