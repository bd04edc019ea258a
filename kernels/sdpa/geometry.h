// SPDX-License-Identifier: Apache-2.0
// What a configuration means for a kernel's geometry: its tiles, warps, stages and
// registers, and the shapes that the families are templates of.
//
//   static_assert(TileM(Config{.kv_tiling = 1}) == 16);
//
// Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_GEOMETRY_H_
#define WARPLEDGER_KERNELS_SDPA_GEOMETRY_H_

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/tile_layout.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

inline constexpr int kWarpSize = 32;

// The tile of a configuration of the wgmma family.
constexpr WgmmaTile WgmmaTileFor(const Config& c) {
  return c.wgmma_fp8 ? kFp8Tile : WgmmaTileOf(c.wgmma_tile, c.consumer_warpgroups != 0, c.head_dim);
}

// The wgmma family's own geometry.
constexpr WgmmaShape ShapeOf(const Config& c) {
  WgmmaShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.fp8 = c.wgmma_fp8 != 0;
  s.two_level = c.wgmma_fp8_two_level != 0;
  s.block_scale = c.wgmma_fp8_block_scale != 0;
  const WgmmaTile tile = WgmmaTileFor(c);
  s.consumers = tile.consumers;
  s.tile_n = tile.tile_n;
  s.stages = c.kv_ring_stages == 0 ? 1 : c.kv_ring_stages == 1 ? tile.stages : c.kv_ring_stages;
  s.overlap = c.softmax_overlap != 0;
  s.late_wait = c.wgmma_late_wait;
  s.turns = static_cast<WgmmaTurns>(c.ping_pong);
  s.dynamic_schedule = c.dynamic_schedule != 0;
  s.fetch_ahead = c.dynamic_schedule == 2;
  s.tma_store = c.tma_store != 0;
  s.exp = kWgmmaExpMethods[c.wgmma_exp];
  s.rescale = c.wgmma_thread_max     ? WgmmaRescale::kThreadRises
              : c.wgmma_lazy_rescale ? WgmmaRescale::kRowRises
                                     : WgmmaRescale::kEachTile;
  s.mask_all = c.wgmma_mask_all != 0;
  s.tile_per_cta = c.wgmma_tile_per_cta != 0;
  s.tile_order = static_cast<WgmmaTileOrder>(c.wgmma_tile_order);
  s.cp_async = c.wgmma_cp_async != 0;
  s.inline_loads = c.wgmma_inline_loads != 0;
  s.equal_registers = c.wgmma_equal_registers != 0;
  s.more_registers = c.wgmma_more_registers != 0;
  s.cluster = c.kv_multicast ? c.kv_multicast : 1;
  s.pack_heads = c.wgmma_pack_heads != 0;
  s.split_kv = c.wgmma_split_kv != 0;
  s.join_kernel = c.wgmma_join_kernel != 0;
  s.cluster_join = c.wgmma_cluster_join != 0;
  s.dependent_launch = c.wgmma_dependent_launch != 0;
  s.p_smem = c.wgmma_p_smem != 0;
  if (s.p_smem) {
    // P's place is taken from keys at head_dim 256, where there is no other; else from the
    // ring, if it must be.
    if (s.head_dim == 256) s.tile_n = 64;
    while (MakeSmem(s).bytes > kMaxWgmmaSmemBytes && s.stages > 1) --s.stages;
  }
  return s;
}

// The mma family's.
constexpr MmaShape MmaShapeOf(const Config& c) {
  const MmaTile tile = kMmaTiles[c.mma_tile];
  MmaShape s;
  s.head_dim = c.head_dim;
  s.row_warps = tile.row_warps;
  s.rows_per_warp = tile.rows_per_warp;
  s.tile_n = tile.tile_n;
  s.key_groups = c.mma_key_groups > 0 ? c.mma_key_groups : 1;
  s.stages = c.mma_cp_async_stages;
  s.layout = static_cast<MmaLayout>(c.mma_smem_layout);
  s.q_registers = c.mma_q_registers != 0;
  s.p_registers = c.mma_p_registers != 0;
  s.v_transposed = c.mma_v_ldmatrix_trans != 0;
  s.exp = static_cast<ExpMethod>(c.mma_exp);
  s.softmax_overlap = c.mma_softmax_overlap != 0;
  s.lazy_rescale = c.mma_lazy_rescale != 0;
  s.fp16_accumulators = c.mma_fp16_accumulate;
  s.border_mask = c.mma_border_mask != 0;
  s.producer_warps = c.mma_producer_warps;
  s.longest_first = c.mma_longest_first != 0;
  s.persistent = static_cast<MmaPersistent>(c.mma_persistent);
  s.split_kv = c.mma_split_kv != 0;
  s.pack_heads = c.mma_pack_heads != 0;
  s.kv = static_cast<MmaKv>(c.mma_kv_dtype);
  s.kv_block_scale = c.mma_kv_block_scale != 0;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.input = !c.projected             ? MmaInput::kGiven
            : c.fuse_projection == 0 ? MmaInput::kPacked
            : c.fuse_projection == 1 ? MmaInput::kRecomputed
                                     : MmaInput::kClusterProjected;
  s.layernorm = c.projected && c.fuse_projection != 0 && c.fuse_layernorm != 0;
  s.dependent_launch = c.mma_dependent_launch != 0;
  s.bulk_copy = c.mma_bulk_copy != 0;
  return s;
}

// The resident family's own geometry.
constexpr ResidentShape ResidentShapeOf(const Config& c) {
  ResidentShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.warpgroups = c.kv_warpgroups ? 2 : 1;
  s.cluster = c.cluster_split_kv > 0 ? c.cluster_split_kv : 1;
  s.fp16_exchange = c.fp16_exchange != 0;
  s.dependent_launch = c.dependent_launch != 0;
  return s;
}

// Query rows per CTA.
constexpr int TileM(const Config& c) {
  if (c.mma_sync) return TileM(MmaShapeOf(c));
  if (c.resident_kv) return kRowsPerConsumer;
  if (c.wgmma) return TileM(ShapeOf(c));
  if (c.tile_m > 0) return c.tile_m;
  return !c.kv_tiling ? 1 : c.tile_m32_warps4 ? 32 : 16;
}
// Keys per step of the K/V loop.
constexpr int TileN(const Config& c) {
  if (c.resident_kv) return ChunkKeys(ResidentShapeOf(c));
  if (c.wgmma) return ShapeOf(c).tile_n;
  if (c.mma_sync) return MmaShapeOf(c).tile_n;
  if (c.tile_n > 0) return c.tile_n;
  return c.kv_tiling ? 32 : 64;
}
// Warps that compute. With tile_m, as many as make each one's rows 16, but not less
// than the four schedulers of an SM have use for; three where four would not divide.
constexpr int Warps(const Config& c) {
  if (c.resident_kv) return Threads(ResidentShapeOf(c)) / kWarpSize;
  if (c.wgmma) return Threads(ShapeOf(c)) / kWarpSize;
  if (c.mma_sync) return Threads(MmaShapeOf(c)) / kWarpSize;
  if (c.tile_m == 48) return 3;
  if (c.tile_m > 64) return c.tile_m / 16;
  return c.tile_m32_warps4 ? 4 : 2;
}
// Threads that compute, and all of them: producer warps copy on top.
constexpr int ComputeThreads(const Config& c) { return Warps(c) * kWarpSize; }
constexpr int Threads(const Config& c) { return ComputeThreads(c) + c.producer_warps * kWarpSize; }
// How Q, K and V lie in shared memory.
constexpr TileLayout LayoutOf(const Config& c) {
  return c.xor_swizzle        ? TileLayout::kXor
         : c.smem_layout == 1 ? TileLayout::kDense
         : c.smem_layout == 2 ? TileLayout::kPanels
                              : TileLayout::kPadded;
}
// K/V tiles resident in shared memory.
constexpr int Stages(const Config& c) {
  if (c.resident_kv) return 1;
  if (c.wgmma) return ShapeOf(c).stages;
  if (c.mma_sync) return Stages(MmaShapeOf(c));
  return c.cp_async_stages > 0 ? c.cp_async_stages : 1;
}
// Keeps the instances of the smem family within the 128 registers per thread of the
// L4 notes' budget. Without a bound ptxas aims for more CTAs per SM and spills in two
// of the ladder's steps on sm_80 and sm_90. At head_dim 256 the output alone takes 64
// more, and 1024 scores of a warp in registers spill beside it. At softmax_in_registers=3
// a warp's output is 16 whole rows: at head_dim 128 64 registers, and such tiles of 64 keys
// leave room in shared memory for two CTAs per SM, whatever the registers.
constexpr int RegisterBudget(const Config& c) {
  if (c.head_dim == 256) return 256;
  if (c.softmax_in_registers != 3) return 128;
  const bool many_scores = TileM(c) * TileN(c) / Warps(c) >= 1024;  // of a warp
  if (c.head_dim == 128) return many_scores ? 256 : 168;
  return many_scores ? 168 : 128;
}
constexpr int MinCtasPerSm(const Config& c) {
  const int ctas = 65536 / (RegisterBudget(c) * Threads(c));
  return ctas > 0 ? ctas : 1;  // of many threads, which then have less than the budget
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_GEOMETRY_H_
