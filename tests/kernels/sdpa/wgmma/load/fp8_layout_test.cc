// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/wgmma/load/fp8_layout.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace warpledger::sdpa::fp8 {
namespace {

constexpr int kWarpLanes = 32;

TEST(KeyAt, IsAPermutationWithPositionOfAsItsInverse) {
  std::set<int> keys;
  for (int k = 0; k < kKeysPerProduct; ++k) {
    keys.insert(KeyAt(k));
    EXPECT_EQ(PositionOf(KeyAt(k)), k);
  }
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(kKeysPerProduct));
  EXPECT_EQ(*keys.rbegin(), kKeysPerProduct - 1);
}

// Byte `byte` of register `reg` of A is, by the PTX ISA's figure of the 8-bit A fragment, row
// lane / 4 (+ 8 for registers 1 and 3) and position 4 (lane % 4) + byte (+ 16 for registers 2
// and 3). The accumulator that is put there must be of that row and of the key at that position.
TEST(AccumulatorOfByte, IsOfTheRowAndTheKeyThatTheOperandHasThere) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int reg = 0; reg < 4; ++reg) {
      for (int byte = 0; byte < 4; ++byte) {
        const int operand_row = lane / 4 + 8 * (reg % 2);
        const int position = 4 * (lane % 4) + byte + 16 * (reg / 2);
        const int i = AccumulatorOfByte(reg, byte);
        const int accumulator_row = lane / 4 + 8 * (i / 2 % 2);
        const int key = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
        EXPECT_EQ(accumulator_row, operand_row) << lane << ", " << reg << ", " << byte;
        EXPECT_EQ(key, KeyAt(position)) << lane << ", " << reg << ", " << byte;
      }
    }
  }
}

TEST(AccumulatorOfByte, TakesEachAccumulatorOnce) {
  std::set<int> taken;
  for (int reg = 0; reg < 4; ++reg) {
    for (int byte = 0; byte < 4; ++byte) taken.insert(AccumulatorOfByte(reg, byte));
  }
  EXPECT_EQ(taken.size(), 16u);
}

// A value that says which element of V it is.
uint8_t Value(int key, int column) { return static_cast<uint8_t>(key * 16 + column); }

// ldmatrix.trans as the PTX ISA has it: element (row, i) of the 8x8 matrix of 16-bit values goes
// to lane 4 i + row / 2, half row % 2.
std::array<uint32_t, kWarpLanes> LoadTransposed(int first_key) {
  std::array<uint32_t, kWarpLanes> lanes{};
  for (int row = 0; row < 8; ++row) {
    for (int i = 0; i < 8; ++i) {
      const uint32_t pair = static_cast<uint32_t>(Value(first_key + row, 2 * i)) |
                            static_cast<uint32_t>(Value(first_key + row, 2 * i + 1)) << 8;
      lanes[4 * i + row / 2] |= pair << (16 * (row % 2));
    }
  }
  return lanes;
}

TEST(Transpose, PutsFourKeysOfAColumnInTheOrderOfTheirPositions) {
  const std::array<uint32_t, kWarpLanes> low = LoadTransposed(0);
  const std::array<uint32_t, kWarpLanes> high = LoadTransposed(8);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const uint32_t even = Prmt(low[lane], high[lane], kEvenColumn);
    const uint32_t odd = Prmt(low[lane], high[lane], kOddColumn);
    for (int byte = 0; byte < 4; ++byte) {
      const int key = KeyAt(4 * (lane % 4) + byte);
      EXPECT_EQ(even >> (8 * byte) & 0xff, Value(key, 2 * (lane / 4))) << lane << ", " << byte;
      EXPECT_EQ(odd >> (8 * byte) & 0xff, Value(key, 2 * (lane / 4) + 1)) << lane << ", " << byte;
    }
  }
}

// --- A whole tile, as the warps of transpose.cuh move it ---------------------------

struct TileCase {
  int tile_n;
  int head_dim;
};
class WholeTile : public testing::TestWithParam<TileCase> {};

// What tells an element from every other of its key or of its column.
uint8_t Element(int key, int column) { return static_cast<uint8_t>(key * 37 + column * 101 + 7); }

using Bytes = std::vector<uint8_t>;

// ldmatrix.x4.trans: row i of matrix m begins where lane 8 m + i says.
std::array<std::array<uint32_t, 4>, kWarpLanes> LdMatrixTransposed(
    const Bytes& tile, const std::array<uint32_t, kWarpLanes>& at) {
  std::array<std::array<uint32_t, 4>, kWarpLanes> lanes{};
  for (int m = 0; m < 4; ++m) {
    for (int row = 0; row < 8; ++row) {
      for (int i = 0; i < 8; ++i) {
        const uint32_t from = at[8 * m + row] + 2 * static_cast<uint32_t>(i);
        const uint32_t pair = tile.at(from) | static_cast<uint32_t>(tile.at(from + 1)) << 8;
        lanes[4 * i + row / 2][m] |= pair << (16 * (row % 2));
      }
    }
  }
  return lanes;
}

// stmatrix.x4: lane l holds bytes 4 (l % 4) to 4 (l % 4) + 3 of row l / 4 of each matrix.
void StMatrix(const std::array<std::array<uint32_t, 4>, kWarpLanes>& lanes,
              const std::array<uint32_t, kWarpLanes>& at, Bytes* tile) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int m = 0; m < 4; ++m) {
      for (int byte = 0; byte < 4; ++byte) {
        tile->at(at[8 * m + lane / 4] + 4 * static_cast<uint32_t>(lane % 4) +
                 static_cast<uint32_t>(byte)) = static_cast<uint8_t>(lanes[lane][m] >> (8 * byte));
      }
    }
  }
}

// Eight rows of a matrix must lie at eight different chunks of the 32 banks.
void ExpectNoConflict(const std::array<uint32_t, kWarpLanes>& at) {
  for (int m = 0; m < 4; ++m) {
    std::set<uint32_t> chunks;
    for (int i = 0; i < 8; ++i) chunks.insert(at[8 * m + i] / 16 % 8);
    EXPECT_EQ(chunks.size(), 8u);
  }
}

TEST_P(WholeTile, ArrivesWithKeysAlongTheRowsInTheOrderOfTheirPositions) {
  const auto [tile_n, head_dim] = GetParam();
  const int key_blocks = (tile_n + kRowBytes - 1) / kRowBytes;
  Bytes raw(static_cast<size_t>(tile_n) * head_dim);
  for (int key = 0; key < tile_n; ++key) {
    for (int column = 0; column < head_dim; ++column) {
      // As TMA writes boxes of 128 columns.
      const size_t at = static_cast<size_t>(column / kRowBytes) * tile_n * kRowBytes +
                        SwizzledChunk(key, column % kRowBytes / 16) + column % 16;
      raw.at(at) = Element(key, column);
    }
  }
  Bytes turned(static_cast<size_t>(key_blocks) * head_dim * kRowBytes);
  for (int key = 0; key < tile_n; key += kKeysPerProduct) {
    for (uint32_t chunk = 0; chunk < static_cast<uint32_t>(head_dim / 16); ++chunk) {
      std::array<uint32_t, kWarpLanes> from;
      std::array<uint32_t, kWarpLanes> to;
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        from[lane] = LoadByte(LaneLoadByte(lane), key, chunk, tile_n);
        to[lane] = StoreByte(LaneStoreByte(lane), key, chunk, head_dim);
      }
      ExpectNoConflict(from);
      ExpectNoConflict(to);
      auto lanes = LdMatrixTransposed(raw, from);
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        const std::array<uint32_t, 4> keys = lanes[lane];
        for (int half = 0; half < 2; ++half) {
          lanes[lane][2 * half] = Prmt(keys[2 * half], keys[2 * half + 1], FirstSelector(lane));
          lanes[lane][2 * half + 1] =
              Prmt(keys[2 * half], keys[2 * half + 1], SecondSelector(lane));
        }
      }
      StMatrix(lanes, to, &turned);
    }
  }
  for (int position = 0; position < tile_n; ++position) {
    const int key = position / kKeysPerProduct * kKeysPerProduct + KeyAt(position % 32);
    for (int column = 0; column < head_dim; ++column) {
      // As a K-major operand with the 128-byte swizzle is read.
      const size_t at = static_cast<size_t>(position / kRowBytes) * head_dim * kRowBytes +
                        SwizzledChunk(column, position % kRowBytes / 16) + position % 16;
      ASSERT_EQ(turned.at(at), Element(key, column)) << position << ", " << column;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, WholeTile,
                         testing::Values(TileCase{128, 128}, TileCase{96, 128}, TileCase{224, 128},
                                         TileCase{128, 256}),
                         [](const auto& info) {
                           return std::to_string(info.param.tile_n) + "x" +
                                  std::to_string(info.param.head_dim);
                         });

}  // namespace
}  // namespace warpledger::sdpa::fp8
