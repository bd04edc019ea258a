// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/smem/tile_layout.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/rules/rules.h"
#include "kernels/sdpa/smem/shape.h"

namespace warpledger::sdpa::smem {
namespace {

using bank_model::IdealWavefronts;
using bank_model::Wavefronts;

constexpr TileLayout kLayouts[] = {TileLayout::kPadded, TileLayout::kDense, TileLayout::kPanels,
                                   TileLayout::kXor};
constexpr int kRows[] = {16, 32, 48, 64, 128};

TEST(TileOffset, PutsEachElementInAPlaceOfItsOwnInsideTheTile) {
  for (const TileLayout layout : kLayouts) {
    for (const int head_dim : kHeadDims) {
      for (const int rows : kRows) {
        std::set<int> places;
        for (int row = 0; row < rows; ++row) {
          for (int col = 0; col < head_dim; ++col) {
            places.insert(TileOffset(layout, head_dim, rows, row, col));
          }
        }
        EXPECT_EQ(places.size(), static_cast<size_t>(rows * head_dim));
        EXPECT_GE(*places.begin(), 0);
        EXPECT_LT(*places.rbegin(), TileElements(layout, head_dim, rows));
      }
    }
  }
}

TEST(TileOffset, KeepsTheEightElementsOfAChunkTogetherAndAligned) {
  for (const TileLayout layout : kLayouts) {
    for (const int head_dim : kHeadDims) {
      for (int row = 0; row < 32; ++row) {
        for (int col = 0; col < head_dim; ++col) {
          const int chunk = TileOffset(layout, head_dim, 32, row, col - col % kChunkHalves);
          EXPECT_EQ(chunk % kChunkHalves, 0);
          EXPECT_EQ(TileOffset(layout, head_dim, 32, row, col), chunk + col % kChunkHalves);
        }
      }
    }
  }
}

// load_matrix_sync reads element (i, j) of a fragment at i * ld + j, wants 32-byte
// aligned fragments and an ld of whole 16 bytes.
TEST(HasLinearFragments, SaysWhetherLoadMatrixSyncCanReadEachFragment) {
  for (const TileLayout layout : kLayouts) {
    for (const int head_dim : kHeadDims) {
      bool linear = RowStride(layout, head_dim) % kChunkHalves == 0;
      for (int row = 0; row < 32; row += 16) {
        for (int col = 0; col < head_dim; col += 16) {
          const int first = TileOffset(layout, head_dim, 32, row, col);
          linear = linear && first * 2 % 32 == 0;
          for (int i = 0; i < 16; ++i) {
            for (int j = 0; j < 16; ++j) {
              linear = linear && TileOffset(layout, head_dim, 32, row + i, col + j) ==
                                     first + i * RowStride(layout, head_dim) + j;
            }
          }
        }
      }
      EXPECT_EQ(linear, HasLinearFragments(layout));
    }
  }
}

// The prediction of the toggles smem_layout and xor_swizzle, over every fragment of
// every tile: wavefronts of one ldmatrix.x4.
TEST(FragmentRows, TakeAsManyWavefrontsAsTheRegistryForetells) {
  const auto expected = [](TileLayout layout) {
    return layout == TileLayout::kDense ? 32 : layout == TileLayout::kPanels ? 8 : 4;
  };
  EXPECT_EQ(IdealWavefronts(16), 4);
  for (const TileLayout layout : kLayouts) {
    for (const int head_dim : kHeadDims) {
      for (const int rows : kRows) {
        for (int row = 0; row < rows; row += 16) {
          for (int col = 0; col < head_dim; col += 16) {
            EXPECT_EQ(Wavefronts(FragmentRows(layout, head_dim, rows, row, col), 16),
                      expected(layout));
          }
        }
      }
    }
  }
}

TEST(CopyRows, AreFreeOfConflictsInEveryLayoutAtHeadDim64) {
  for (const TileLayout layout : kLayouts) {
    for (const int rows : kRows) {
      for (int chunk = 0; chunk < rows * 8; chunk += bank_model::kLanes) {
        EXPECT_EQ(Wavefronts(CopyRows(layout, 64, rows, chunk), 16), 4);
      }
    }
  }
}

TEST(LayoutOf, FollowsTheToggles) {
  EXPECT_EQ(LayoutOf({}), TileLayout::kPadded);
  EXPECT_EQ(LayoutOf({.smem_layout = 1}), TileLayout::kDense);
  EXPECT_EQ(LayoutOf({.smem_layout = 2}), TileLayout::kPanels);
  EXPECT_EQ(LayoutOf({.xor_swizzle = 1}), TileLayout::kXor);
}

// The matrix's NOT_APPLICABLE, with its reason.
TEST(LayoutOf, IsNeverOneThatWmmaCanNotRead) {
  for (const Config& config : {Config{.kv_tiling = 1, .vector_loads = 1, .wmma_qk = 1},
                               Config{.kv_tiling = 1, .vector_loads = 1, .wmma_pv = 1}}) {
    EXPECT_FALSE(WhyInvalid(config));
    Config swizzled = config;
    swizzled.xor_swizzle = 1;
    const InvalidReason reason = WhyInvalid(swizzled);
    EXPECT_EQ(reason.kind, InvalidReason::Kind::kExcluded);
    EXPECT_EQ(reason.toggle, "xor_swizzle");
    EXPECT_NE(std::string(reason.why).find("leading dimension"), std::string::npos);
  }
}

}  // namespace
}  // namespace warpledger::sdpa::smem
