// SPDX-License-Identifier: Apache-2.0
// How a (rows, head_dim) fp16 tile lies in shared memory.
//
//   kPadded  row-major, 16 bytes of padding behind each row
//   kDense   row-major, nothing between the rows
//   kPanels  panels of 16 columns, one behind the other; each is row-major with
//            rows of 32 bytes. The panels are 32 bytes apart on top, so that the
//            chunks of one row, which a copy writes together, miss each other's banks
//   kXor     row-major, dense; the 16-byte chunks of a row permuted (bank_model.h)
//
// wmma::load_matrix_sync takes a pointer and one leading dimension: it can read a
// 16x16 fragment only where element (i, j) lies at i * ld + j. kXor has no such ld.
// kPanels is the nearest layout without padding that has one: its permutation moves
// whole 16-column blocks. bank_model's wavefronts for one ldmatrix.x4 are in
// tests/kernels/sdpa/smem/tile_layout_test.cc.
//
// Host-safe and constexpr; the kernels fold every call.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_TILE_LAYOUT_H_
#define WARPLEDGER_KERNELS_SDPA_SMEM_TILE_LAYOUT_H_

#include "kernels/common/bank_model.h"

namespace warpledger::sdpa::smem {

enum class TileLayout { kPadded, kDense, kPanels, kXor };

inline constexpr int kChunkHalves = 8;    // fp16 in the 16 bytes that a copy moves
inline constexpr int kPanelColumns = 16;  // the width of a WMMA fragment

// Elements between two rows.
constexpr int RowStride(TileLayout layout, int head_dim) {
  switch (layout) {
    case TileLayout::kPadded:
      return head_dim + kChunkHalves;
    case TileLayout::kPanels:
      return kPanelColumns;
    case TileLayout::kDense:
    case TileLayout::kXor:
      break;
  }
  return head_dim;
}

// Whether element (i, j) of each aligned 16x16 block lies RowStride * i + j behind
// its first, as load_matrix_sync needs.
constexpr bool HasLinearFragments(TileLayout layout) { return layout != TileLayout::kXor; }

constexpr int PanelStride(int rows) { return (rows + 1) * kPanelColumns; }

// Elements of a tile with `rows` rows, padding included.
constexpr int TileElements(TileLayout layout, int head_dim, int rows) {
  return layout == TileLayout::kPanels ? head_dim / kPanelColumns * PanelStride(rows)
                                       : rows * RowStride(layout, head_dim);
}

// Where element (row, col) of a tile with `rows` rows lies, in elements. The eight
// elements of a chunk stay together in every layout.
constexpr int TileOffset(TileLayout layout, int head_dim, int rows, int row, int col) {
  switch (layout) {
    case TileLayout::kPanels:
      return col / kPanelColumns * PanelStride(rows) + row * kPanelColumns + col % kPanelColumns;
    case TileLayout::kXor:
      return row * head_dim +
             bank_model::XorSwizzle(row, col / kChunkHalves, head_dim / kChunkHalves) *
                 kChunkHalves +
             col % kChunkHalves;
    case TileLayout::kPadded:
    case TileLayout::kDense:
      break;
  }
  return row * RowStride(layout, head_dim) + col;
}

// The addresses of one ldmatrix.x4 of the 16x16 fragment at (first_row, first_col)
// (see bank_model::LdmatrixRows).
constexpr bank_model::LaneAddresses FragmentRows(TileLayout layout, int head_dim, int rows,
                                                 int first_row, int first_col) {
  bank_model::LaneAddresses addresses{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) {
    addresses[lane] = 2 * TileOffset(layout, head_dim, rows, first_row + lane % 16,
                                     first_col + lane / 16 * kChunkHalves);
  }
  return addresses;
}

// The addresses of a warp's 16-byte stores, lane after lane along the rows, as the
// copies do them from chunk `first_chunk` of the tile on.
constexpr bank_model::LaneAddresses CopyRows(TileLayout layout, int head_dim, int rows,
                                             int first_chunk) {
  const int row_chunks = head_dim / kChunkHalves;
  bank_model::LaneAddresses addresses{};
  for (int lane = 0; lane < bank_model::kLanes; ++lane) {
    const int chunk = first_chunk + lane;
    addresses[lane] = 2 * TileOffset(layout, head_dim, rows, chunk / row_chunks,
                                     chunk % row_chunks * kChunkHalves);
  }
  return addresses;
}

}  // namespace warpledger::sdpa::smem

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_TILE_LAYOUT_H_
