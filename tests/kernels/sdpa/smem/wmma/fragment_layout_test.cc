// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/smem/wmma/fragment_layout.h"

#include <map>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace warpledger::sdpa::smem {
namespace {

constexpr int kLanes = 32;

TEST(AccumulatorPlace, HoldsEachElementOfTheTileOnce) {
  std::set<std::pair<int, int>> places;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kAccumulatorElements; ++i) {
      const FragmentPlace place = AccumulatorPlace(lane, i);
      EXPECT_TRUE(places.insert({place.row, place.col}).second) << lane << ", " << i;
      EXPECT_TRUE(place.row >= 0 && place.row < 16 && place.col >= 0 && place.col < 16);
    }
  }
  EXPECT_EQ(places.size(), 256u);
}

TEST(MatrixAPlace, HoldsEachElementOfTheTileTwiceAndInOneLane) {
  std::map<std::pair<int, int>, std::multiset<int>> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kMatrixAElements; ++i) {
      const FragmentPlace place = MatrixAPlace(lane, i);
      lanes[{place.row, place.col}].insert(lane);
    }
  }
  EXPECT_EQ(lanes.size(), 256u);
  for (const auto& [place, holders] : lanes) {
    EXPECT_EQ(holders.size(), 2u);
    EXPECT_EQ(holders.count(*holders.begin()), 2u);
  }
}

// What the reductions stand on: a row's elements are in four lanes that two
// butterflies join, each lane has two rows, and AccumulatorRowOfLane tells them apart.
TEST(AccumulatorPlace, SpreadsARowOverFourLanesThatTwoButterfliesJoin) {
  std::map<int, std::set<int>> lanes_of_row;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kAccumulatorElements; ++i) {
      const FragmentPlace place = AccumulatorPlace(lane, i);
      EXPECT_EQ(place.row, FirstRowOfLane(lane) + 8 * AccumulatorRowOfLane(i));
      lanes_of_row[place.row].insert(lane);
    }
  }
  ASSERT_EQ(lanes_of_row.size(), 16u);
  for (const auto& [row, lanes] : lanes_of_row) {
    const int first = *lanes.begin();
    EXPECT_EQ(lanes, (std::set<int>{first, first ^ 1, first ^ 2, first ^ 3})) << "row " << row;
  }
}

// half2 stores of P rely on it.
TEST(AccumulatorPlace, HoldsNeighboursInPairs) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kAccumulatorElements; i += 2) {
      FragmentPlace next = AccumulatorPlace(lane, i);
      EXPECT_EQ(next.col % 2, 0);
      ++next.col;
      EXPECT_EQ(AccumulatorPlace(lane, i + 1), next);
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa::smem
