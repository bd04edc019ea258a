#include "kernels/sdpa/wgmma/fp8_layout.h"

#include <array>
#include <cstdint>
#include <set>

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

}  // namespace
}  // namespace warpledger::sdpa::fp8
