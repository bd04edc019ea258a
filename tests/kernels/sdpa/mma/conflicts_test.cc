// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/mma/conflicts.h"

#include <set>

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

using bank_model::Wavefronts;

constexpr MmaLayout kLayouts[] = {MmaLayout::kLinear, MmaLayout::kXorSwizzle, MmaLayout::kPadding};
constexpr int kRows = 128;

// The widths of rows that the family has: head_dim, and tile_n for P.
constexpr int kColumns[] = {32, 64, 128};

TEST(MmaLayout, PutsEachChunkOfATileIntoAPlaceOfItsOwn) {
  for (const MmaLayout layout : kLayouts) {
    for (const int columns : kColumns) {
      std::set<int> places;
      for (int row = 0; row < kRows; ++row) {
        for (int chunk = 0; chunk < columns / 8; ++chunk) {
          const int offset = ChunkOffset(layout, columns, row, chunk);
          EXPECT_EQ(offset % kMmaChunkBytes, 0);
          EXPECT_GE(offset, row * RowBytes(layout, columns));
          EXPECT_LE(offset + kMmaChunkBytes, (row + 1) * RowBytes(layout, columns));
          places.insert(offset);
        }
      }
      EXPECT_EQ(places.size(), static_cast<size_t>(kRows * columns / 8));
    }
  }
}

TEST(MmaLayout, MovesByBlocksAsTheKernelsAddressesDo) {
  // FragmentAddress: chunks by XOR under the swizzle, by addition else; rows by addition.
  for (const MmaLayout layout : kLayouts) {
    for (const int columns : kColumns) {
      for (const bool rows_first : {true, false}) {
        const auto origin = BlockLoad(layout, columns, rows_first, 0, 0);
        for (int row = 0; row < kRows; row += 16) {
          for (int block = 0; block < columns / 16; ++block) {
            const auto moved = BlockLoad(layout, columns, rows_first, row, block);
            for (int lane = 0; lane < bank_model::kLanes; ++lane) {
              const uint32_t in_row = layout == MmaLayout::kXorSwizzle
                                          ? origin[lane] ^ (block * 2u * kMmaChunkBytes)
                                          : origin[lane] + block * 2u * kMmaChunkBytes;
              ASSERT_EQ(moved[lane], in_row + row * RowBytes(layout, columns))
                  << columns << " columns, row " << row << ", block " << block << ", lane " << lane;
            }
          }
        }
      }
    }
  }
}

// Every ldmatrix of every block of every tile, by layout.
TEST(MmaConflicts, VanishForSwizzledAndPaddedRowsAndAreEightfoldForLinearOnes) {
  for (const int columns : {64, 128}) {
    for (const bool rows_first : {true, false}) {
      for (int row = 0; row < kRows; row += 16) {
        for (int block = 0; block < columns / 16; ++block) {
          const auto wavefronts = [&](MmaLayout layout) {
            return Wavefronts(BlockLoad(layout, columns, rows_first, row, block), kMmaChunkBytes);
          };
          ASSERT_EQ(wavefronts(MmaLayout::kLinear), 32);
          ASSERT_EQ(wavefronts(MmaLayout::kXorSwizzle), 4);
          ASSERT_EQ(wavefronts(MmaLayout::kPadding), 4);
        }
      }
    }
  }
}

TEST(MmaConflicts, AreNoneInTheCopiesWhateverTheLayout) {
  for (const MmaLayout layout : kLayouts) {
    for (const int columns : {64, 128}) {
      for (int first = 0; first < kRows * columns / 8; first += bank_model::kLanes) {
        ASSERT_EQ(Wavefronts(CopyStore(layout, columns, first), kMmaChunkBytes), 4);
      }
    }
  }
}

TEST(MmaConflicts, OfTheStoresOfPFollowTheLayoutToo) {
  for (int row = 0; row < kRows; row += 8) {
    for (int block = 0; block < 8; ++block) {
      const auto wavefronts = [&](MmaLayout layout) {
        return Wavefronts(ProbsStore(layout, 64, row, block), 4);
      };
      ASSERT_EQ(wavefronts(MmaLayout::kLinear), 8);
      ASSERT_EQ(wavefronts(MmaLayout::kXorSwizzle), 1);
      ASSERT_EQ(wavefronts(MmaLayout::kPadding), 1);
    }
  }
}

TEST(MmaConflicts, GiveTheWavefrontsOfATileThatACounterCanBeHeldAgainst) {
  constexpr MmaShape kLinear = {.head_dim = 64, .tile_n = 64};
  constexpr MmaShape kSwizzled = {.head_dim = 64, .tile_n = 64, .layout = MmaLayout::kXorSwizzle};
  // 64 x 64 fp16 of K and of V, at 128 bytes a wavefront.
  EXPECT_EQ(KvWavefrontsPerWarpAndTile(kSwizzled), 2 * 64 * 64 * 2 / 128);
  EXPECT_EQ(KvWavefrontsPerWarpAndTile(kLinear), 8 * KvWavefrontsPerWarpAndTile(kSwizzled));
}

constexpr MmaShape kCore = {.layout = MmaLayout::kXorSwizzle,
                            .q_registers = true,
                            .p_registers = true,
                            .v_transposed = true};

// 0014's example: 6 CTAs of 4 warps, each with 4 blocks of Q and 32 of K and V in two tiles.
TEST(PredictReads, CountsEachLdmatrixOfALaunchAndItsWavefronts) {
  const Problem problem = {2, 3, 3, 33, 65, 64, false};
  const auto swizzled = PredictReads(kCore, problem);
  ASSERT_TRUE(swizzled);
  EXPECT_EQ(swizzled->instructions, 6 * 4 * (4 + 2 * 32));
  EXPECT_EQ(swizzled->wavefronts, 4 * swizzled->instructions);
  MmaShape linear = kCore;
  linear.layout = MmaLayout::kLinear;
  EXPECT_EQ(PredictReads(linear, problem)->instructions, swizzled->instructions);
  EXPECT_EQ(PredictReads(linear, problem)->wavefronts, 32 * swizzled->instructions);
  // Twice the rows per warp: half the warps, whose reads of K and V are as many each.
  MmaShape wide = kCore;
  wide.rows_per_warp = 32;
  const Problem longer = {1, 8, 8, 2048, 2048, 64, false};
  EXPECT_EQ(PredictReads(wide, longer)->instructions, 8 * 16 * 4 * (8 + 32 * 32));
  EXPECT_EQ(PredictReads(kCore, longer)->instructions, 8 * 32 * 4 * (4 + 32 * 32));
}

TEST(PredictReads, SaysNothingWhereOtherReadsAreAmongThem) {
  const Problem problem = {1, 8, 8, 512, 512, 64, false};
  ASSERT_TRUE(PredictReads(kCore, problem));
  Problem causal = problem;
  causal.causal = true;
  EXPECT_FALSE(PredictReads(kCore, causal));
  for (const auto& change :
       {+[](MmaShape& s) { s.q_registers = false; }, +[](MmaShape& s) { s.p_registers = false; },
        +[](MmaShape& s) { s.v_transposed = false; }, +[](MmaShape& s) { s.key_groups = 2; },
        +[](MmaShape& s) { s.split_kv = true; }, +[](MmaShape& s) { s.producer_warps = 1; },
        +[](MmaShape& s) { s.kv = MmaKv::kE4m3; }, +[](MmaShape& s) { s.pack_heads = true; },
        +[](MmaShape& s) { s.input = MmaInput::kPacked; },
        +[](MmaShape& s) { s.head_dim = 128; }}) {
    MmaShape shape = kCore;
    change(shape);
    EXPECT_FALSE(PredictReads(shape, problem));
  }
}

}  // namespace
}  // namespace warpledger::sdpa
