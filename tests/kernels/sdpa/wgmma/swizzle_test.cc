// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/wgmma/swizzle.h"

#include <map>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

using Element = std::pair<int, int>;  // row, column

// What a warp's four stmatrix.x4 leave of a fragment of 16 rows by 64 columns: the byte
// address of each element. The instruction as the PTX ISA describes it.
std::map<uint32_t, Element> StoredBy16Rows() {
  std::map<uint32_t, Element> stored;
  for (int piece = 0; piece < 4; ++piece) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      for (int row = 0; row < 8; ++row) {
        const int address_lane = 8 * matrix + row;
        const uint32_t at = FragmentPieceByte(FragmentRowByte(address_lane), piece);
        // Element pair `i` of the row comes from lane 4 * row + i, whose accumulator layout
        // says which element that is: matrix bit 0 is the row's half, bit 1 the column's.
        for (int i = 0; i < 4; ++i) {
          const int lane = 4 * row + i;
          for (int j = 0; j < 2; ++j) {
            const Element element = {lane / 4 + 8 * (matrix & 1),
                                     16 * piece + 8 * (matrix >> 1) + 2 * (lane % 4) + j};
            EXPECT_TRUE(stored.emplace(at + 4 * i + 2 * j, element).second);
          }
        }
      }
    }
  }
  return stored;
}

TEST(StoreFragment, PutsEachElementWhereTheSwizzleHasIt) {
  const std::map<uint32_t, Element> stored = StoredBy16Rows();
  EXPECT_EQ(stored.size(), 16u * 64u);
  for (const auto& [byte, element] : stored) {
    EXPECT_EQ(byte, SwizzledByte(element.first, element.second))
        << "row " << element.first << ", column " << element.second;
  }
}

TEST(StoreFragment, HitsNoBankTwiceInAMatrix) {
  for (int piece = 0; piece < 4; ++piece) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::set<uint32_t> chunks;
      for (int row = 0; row < 8; ++row) {
        chunks.insert(FragmentPieceByte(FragmentRowByte(8 * matrix + row), piece) / 16 % 8);
      }
      EXPECT_EQ(chunks.size(), 8u) << "piece " << piece << ", matrix " << matrix;
    }
  }
}

TEST(SwizzledByte, IsAPermutationOfTheTileThatStaysInItsRow) {
  std::set<uint32_t> bytes;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      const uint32_t byte = SwizzledByte(row, column);
      EXPECT_EQ(byte / 128, static_cast<uint32_t>(row));
      // The hardware's rule, on the linear address.
      const uint32_t linear = static_cast<uint32_t>(row * 128 + column * 2);
      EXPECT_EQ(byte, linear ^ (linear >> 3 & 0x70u));
      bytes.insert(byte);
    }
  }
  EXPECT_EQ(bytes.size(), 64u * 64u);
}

}  // namespace
}  // namespace warpledger::sdpa
