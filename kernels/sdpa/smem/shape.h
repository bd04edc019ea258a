// SPDX-License-Identifier: Apache-2.0
// What a configuration of the smem family (simt and wmma) means: its tiles, warps, stages and
// registers.
//
//   static_assert(smem::TileM(Config{.kv_tiling = 1}) == 16);
//
// Kernels of this family are templates of the configuration itself. Its functions have a
// namespace of their own, so that none is called for a configuration of another family by
// mistake: rules/families.h asks the family that a configuration is of. Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SHAPE_H_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SHAPE_H_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/tile_layout.h"

namespace warpledger::sdpa::smem {

inline constexpr int kWarpSize = 32;

// Query rows per CTA.
constexpr int TileM(const Config& c) {
  if (c.tile_m > 0) return c.tile_m;
  return !c.kv_tiling ? 1 : c.tile_m32_warps4 ? 32 : 16;
}
// Keys per step of the K/V loop.
constexpr int TileN(const Config& c) {
  if (c.tile_n > 0) return c.tile_n;
  return c.kv_tiling ? 32 : 64;
}
// Warps that compute. With tile_m, as many as make each one's rows 16, but not less
// than the four schedulers of an SM have use for; three where four would not divide.
constexpr int Warps(const Config& c) {
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
constexpr int Stages(const Config& c) { return c.cp_async_stages > 0 ? c.cp_async_stages : 1; }

// Keeps the instances within the 128 registers per thread of the L4 notes' budget. Without a
// bound ptxas aims for more CTAs per SM and spills in two of the ladder's steps on sm_80 and
// sm_90. At head_dim 256 the output alone takes 64 more, and 1024 scores of a warp in registers
// spill beside it. At softmax_in_registers=3 a warp's output is 16 whole rows: at head_dim 128
// 64 registers, and such tiles of 64 keys leave room in shared memory for two CTAs per SM,
// whatever the registers.
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

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SHAPE_H_
