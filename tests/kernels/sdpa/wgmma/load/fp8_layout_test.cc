// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/wgmma/load/fp8_layout.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/swizzle.h"

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

// What the kernel has for the case.
WgmmaShape ShapeOf(const TileCase& tile) {
  WgmmaShape shape;
  shape.head_dim = tile.head_dim;
  shape.tile_n = tile.tile_n;
  shape.fp8 = shape.two_level = true;
  return shape;
}

// The swizzle as the PTX ISA has it, of addresses in an aligned tile: of rows of 128 bytes bits 4
// to 6 are XORed with bits 7 to 9, of rows of 64 bytes bits 4 and 5 with bits 7 and 8. TMA writes
// at such addresses, and wgmma reads there.
uint32_t Swizzled(uint32_t address, int row_bytes) {
  const uint32_t mask = row_bytes == 128 ? 7 : 3;
  return address ^ (address >> 7 & mask) << 4;
}

// The byte that a product reads through a K-major descriptor: of row (or column of B) `row`, at
// `k` of its 32 along K. Groups of eight rows lie 8 * row_bytes apart.
//   start: the descriptor's address
uint32_t OperandAddress(uint32_t start, int row, int k, int row_bytes) {
  const int at = row / 8 * 8 * row_bytes + row % 8 * row_bytes + k;
  return Swizzled(start + static_cast<uint32_t>(at), row_bytes);
}

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

// (rows, head_dim) as TMA writes it: boxes of RowBytes of each row, one behind another.
Bytes AsLoaded(const WgmmaShape& shape, int rows) {
  const int row_bytes = RowBytes(shape);
  Bytes tile(static_cast<size_t>(rows) * shape.head_dim);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < shape.head_dim; ++column) {
      const int box = column / row_bytes * rows * row_bytes;
      const int at = box + row * row_bytes + column % row_bytes;
      tile.at(Swizzled(static_cast<uint32_t>(at), row_bytes)) = Element(row, column);
    }
  }
  return tile;
}

// What the warps of transpose.cuh make of it.
Bytes Transposed(const WgmmaShape& shape, const Bytes& raw) {
  const int from_row = RowBytes(shape);
  const int to_row = TransposedRowBytes(shape);
  Bytes turned(static_cast<size_t>(MakeSmem(shape).v_bytes));
  for (int key = 0; key < shape.tile_n; key += kKeysPerProduct) {
    for (uint32_t chunk = 0; chunk < static_cast<uint32_t>(shape.head_dim / 16); ++chunk) {
      std::array<uint32_t, kWarpLanes> from;
      std::array<uint32_t, kWarpLanes> to;
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        from[lane] = LoadByte(LaneLoadByte(lane, from_row), key, chunk, shape.tile_n, from_row);
        to[lane] = StoreByte(LaneStoreByte(lane, to_row), key, chunk, shape.head_dim, to_row);
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
  return turned;
}

TEST_P(WholeTile, ArrivesWithKeysAlongTheRowsInTheOrderOfTheirPositions) {
  const WgmmaShape shape = ShapeOf(GetParam());
  const int row_bytes = TransposedRowBytes(shape);
  const Bytes turned = Transposed(shape, AsLoaded(shape, shape.tile_n));
  // As products read it, one of each part of O's columns.
  const int columns = shape.head_dim / OutputParts(shape);
  for (int first_key = 0; first_key < shape.tile_n; first_key += kKeysPerProduct) {
    for (int first = 0; first < shape.head_dim; first += columns) {
      const uint32_t start = OperandByte(first_key, first, shape.head_dim, row_bytes);
      for (int k = 0; k < kKeysPerProduct; ++k) {
        for (int column = 0; column < columns; ++column) {
          ASSERT_EQ(turned.at(OperandAddress(start, column, k, row_bytes)),
                    Element(first_key + KeyAt(k), first + column))
              << first_key << " + " << k << ", " << first << " + " << column;
        }
      }
    }
  }
}

// Q K^T reads K, and Q likewise, as TMA left them.
TEST_P(WholeTile, IsReadByScoresAsItWasLoaded) {
  const WgmmaShape shape = ShapeOf(GetParam());
  const int row_bytes = RowBytes(shape);
  const Bytes keys = AsLoaded(shape, shape.tile_n);
  for (int d = 0; d < shape.head_dim; d += kKeysPerProduct) {
    const auto start = static_cast<uint32_t>(d / SwizzleColumns(shape) * shape.tile_n * row_bytes +
                                             d % SwizzleColumns(shape));
    for (int row = 0; row < shape.tile_n; ++row) {
      for (int k = 0; k < kKeysPerProduct; ++k) {
        ASSERT_EQ(keys.at(OperandAddress(start, row, k, row_bytes)), Element(row, d + k))
            << row << ", " << d << " + " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, WholeTile,
                         testing::Values(TileCase{128, 128}, TileCase{96, 128}, TileCase{224, 128},
                                         TileCase{128, 256}, TileCase{64, 256}, TileCase{96, 64},
                                         TileCase{128, 64}, TileCase{192, 64}),
                         [](const auto& info) {
                           return std::to_string(info.param.tile_n) + "x" +
                                  std::to_string(info.param.head_dim);
                         });

// The swizzle that this file's algebra counts in rows and chunks is the one of addresses.
TEST(SwizzledChunk, IsTheSwizzleOfTheAddress) {
  for (const int row_bytes : {64, 128}) {
    for (int row = 0; row < 64; ++row) {
      for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
        EXPECT_EQ(SwizzledChunk(row, chunk, row_bytes),
                  Swizzled(static_cast<uint32_t>(row * row_bytes + chunk * 16), row_bytes));
      }
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa::fp8
