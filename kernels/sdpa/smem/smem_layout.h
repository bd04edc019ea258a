// SPDX-License-Identifier: Apache-2.0
// Where each tile of a configuration lies in shared memory.
//
// Host-safe, so that `warpledger list` and the budget tests know the bytes
// without a compiler for the GPU. Leading dimensions are in elements. Rows are
// padded by 16 bytes unless toggles say otherwise (tile_layout.h): eight rows then
// start in eight different 16-byte bank groups, so 16-byte accesses down a column
// are free of conflicts, and each row stays aligned for them; scalar accesses of 32
// lanes down a column see 4-way conflicts. Fragments of 16 rows start on 32-byte
// boundaries, which wmma::load_matrix_sync needs.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_SMEM_LAYOUT_H_
#define WARPLEDGER_KERNELS_SDPA_SMEM_SMEM_LAYOUT_H_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/tile_layout.h"

namespace warpledger::sdpa::smem {

// Columns of the row-broadcast fragment that rescales O (one WMMA tile wide).
inline constexpr int kRescaleColumns = 16;

struct SmemLayout {
  // Leading dimensions.
  int ld_tile = 0;     // rows of Q, K, V tiles: fp16
  int ld_scores = 0;   // S: fp32; also P where P V is scalar
  int ld_probs = 0;    // P: fp16, only where P V runs on tensor cores
  int ld_rescale = 0;  // columns over which a row's factor is repeated: fp32
  int ld_out = 0;      // O staged for the epilogue: fp32
  // Byte offsets.
  int q = 0;            // (tile_m, head_dim)
  int k = 0;            // (stages, tile_n, head_dim)
  int v = 0;            // (stages, tile_n, head_dim)
  int scores = 0;       // (tile_m, tile_n)
  int probs = 0;        // (tile_m, tile_n)
  int rescale = 0;      // (tile_m, ld_rescale)
  int row_max = 0;      // (tile_m)
  int row_sum = 0;      // (tile_m)
  int partial_max = 0;  // (parts, tile_m) fp32, with softmax_in_registers
  int partial_sum = 0;  // (parts, tile_m) fp32, with softmax_in_registers
  int ring = 0;         // (2, stages) mbarriers, with producer_warps
  int queue = 0;        // the next piece of work, where it comes from a counter
  int parts = 0;        // pieces that a row's keys are reduced in
  int kv_slot = 0;      // elements of one K or V tile
  int out = 0;          // (tile_m, head_dim), over K and V once the K/V loop is done
  int bytes = 0;
};

constexpr SmemLayout MakeSmemLayout(const Config& c) {
  constexpr int kHalf = 2;
  constexpr int kFloat = 4;
  SmemLayout s;
  s.ld_tile = RowStride(LayoutOf(c), c.head_dim);
  s.ld_scores = TileN(c) + 4;
  s.ld_probs = c.sp_reuse ? s.ld_scores * kFloat / kHalf : TileN(c) + 8;
  s.ld_rescale = c.wmma_pv ? kRescaleColumns : 1;
  s.ld_out = c.head_dim + 4;

  int end = 0;
  const auto take = [&end](int bytes) {
    const int at = end;
    end += (bytes + 31) / 32 * 32;
    return at;
  };
  s.kv_slot = TileElements(LayoutOf(c), c.head_dim, TileN(c));
  const int kv_tile_bytes = c.kv_tiling ? Stages(c) * s.kv_slot * kHalf : 0;
  // Level 2 keeps S in registers, level 3 P too.
  const bool stores_scores = c.softmax_in_registers < 2;
  const bool stores_probs = c.wmma_pv && !c.sp_reuse && c.softmax_in_registers < 3;
  s.q = take(TileElements(LayoutOf(c), c.head_dim, TileM(c)) * kHalf);
  s.k = take(kv_tile_bytes);
  s.v = take(kv_tile_bytes);
  s.out = s.k;
  const int out_end = c.wmma_pv ? s.out + TileM(c) * s.ld_out * kFloat : 0;
  if (end < out_end) end = (out_end + 31) / 32 * 32;
  s.scores = take(stores_scores ? TileM(c) * s.ld_scores * kFloat : 0);
  s.probs = c.sp_reuse ? s.scores : take(stores_probs ? TileM(c) * s.ld_probs * kHalf : 0);
  s.rescale = take(stores_scores ? TileM(c) * s.ld_rescale * kFloat : 0);
  s.row_max = take(TileM(c) * kFloat);
  s.row_sum = take(TileM(c) * kFloat);
  s.parts = c.softmax_in_registers == 1  ? TileN(c) / 16
            : c.softmax_in_registers > 1 ? Warps(c) * 16 / TileM(c)
                                         : 0;
  s.partial_max = take(s.parts * TileM(c) * kFloat);
  s.partial_sum = take(c.softmax_in_registers > 1 ? s.parts * TileM(c) * kFloat : 0);
  s.ring = take(c.producer_warps > 0 ? 2 * Stages(c) * 8 : 0);
  s.queue = take(c.persistent == 2 ? 4 : 0);
  s.bytes = end;
  return s;
}

// O is staged while the row sums, which lie behind the scores, are still read:
// it must end before the scores begin.
constexpr bool OutputFitsBelowScores(const SmemLayout& s, int tile_m) {
  return s.out + tile_m * s.ld_out * static_cast<int>(sizeof(float)) <= s.scores;
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_SMEM_LAYOUT_H_
