// SPDX-License-Identifier: Apache-2.0
// The bank conflicts of the mma family's accesses to shared memory, predicted on
// the host from a shape's layout (kernels/common/bank_model.h). What the model says
// stands beside the profiler's counter of wavefronts.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_CONFLICTS_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_CONFLICTS_H_

#include <cstdint>
#include <optional>

#include "kernels/common/bank_model.h"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

// The row addresses of one ldmatrix.x4 over the 16 x 16 block at row `first_row`,
// column 16 * `column_block`, of a tile with rows of `columns` fp16.
//   rows_first: as FragmentAddress (fragment.cuh)
constexpr bank_model::LaneAddresses BlockLoad(MmaLayout layout, int columns, bool rows_first,
                                              int first_row, int column_block) {
  bank_model::LaneAddresses addresses{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) {
    const int row = rows_first ? lane % 16 : lane / 16 * 8 + lane % 8;
    const int chunk = rows_first ? lane / 16 : lane / 8 % 2;
    addresses[lane] = ChunkOffset(layout, columns, first_row + row, column_block * 2 + chunk);
  }
  return addresses;
}

// A warp of a copy: 32 chunks in the order of rows, from chunk `first` of the tile.
constexpr bank_model::LaneAddresses CopyStore(MmaLayout layout, int columns, int first) {
  const int chunks = columns / 8;
  bank_model::LaneAddresses addresses{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) {
    addresses[lane] =
        ChunkOffset(layout, columns, (first + lane) / chunks, (first + lane) % chunks);
  }
  return addresses;
}

// One store of P: a pair of keys of one accumulator, rows g of the block.
constexpr bank_model::LaneAddresses ProbsStore(MmaLayout layout, int tile_n, int first_row,
                                               int key_block) {
  bank_model::LaneAddresses addresses{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) {
    addresses[lane] = ChunkOffset(layout, tile_n, first_row + lane / 4, key_block) + lane % 4 * 4;
  }
  return addresses;
}

// Wavefronts that one warp's reads of one K and one V tile by ldmatrix take. Every
// block of a tile conflicts alike (a test walks over all of them).
constexpr int KvWavefrontsPerWarpAndTile(const MmaShape& s) {
  const int blocks = s.tile_n / 16 * (s.head_dim / 16);
  return blocks *
         (bank_model::Wavefronts(BlockLoad(s.layout, s.head_dim, false, 0, 0), kMmaChunkBytes) +
          bank_model::Wavefronts(BlockLoad(s.layout, s.head_dim, true, 0, 0), kMmaChunkBytes));
}

// What one launch reads from shared memory.
struct SharedReads {
  int64_t instructions = 0;  // ldmatrix.x4
  int64_t wavefronts = 0;    // that they take
};

// Of a problem under a full mask, where ldmatrix of Q, once, and of K and V are all that the
// kernel reads: P stays in registers, V is transposed on the way, and O leaves as it is. Nothing
// for other kernels and problems.
constexpr std::optional<SharedReads> PredictReads(const MmaShape& s, const Problem& p) {
  const bool only_those = s.q_registers && s.p_registers && s.v_transposed && !Is8Bit(s) &&
                          !HasPartialOutputs(s) && s.producer_warps == 0 && !s.pack_heads &&
                          s.input == MmaInput::kGiven;
  if (!only_those || p.causal || p.head_dim != s.head_dim) return std::nullopt;
  const int64_t query_tiles = (p.seq_q + TileM(s) - 1) / TileM(s);
  const int64_t warps = int64_t{p.batch} * p.heads_q * query_tiles * s.row_warps;
  const int64_t kv_tiles = (p.seq_kv + s.tile_n - 1) / s.tile_n;
  const int64_t q_blocks = s.rows_per_warp / 16 * (s.head_dim / 16);
  const int64_t kv_blocks = int64_t{2} * (s.tile_n / 16) * (s.head_dim / 16);
  const int q_wavefronts =
      bank_model::Wavefronts(BlockLoad(s.layout, s.head_dim, true, 0, 0), kMmaChunkBytes);
  return SharedReads{
      .instructions = warps * (q_blocks + kv_tiles * kv_blocks),
      .wavefronts = warps * (q_blocks * q_wavefronts + kv_tiles * KvWavefrontsPerWarpAndTile(s))};
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_CONFLICTS_H_
