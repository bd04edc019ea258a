// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/holm.h"

#include <gtest/gtest.h>

namespace warpledger::analysis {
namespace {

TEST(HolmTest, FollowsTheTextbookExample) {
  // Smallest to largest: 0.005 < 0.05/4, 0.01 < 0.05/3, 0.03 > 0.05/2: stop.
  const std::vector<HolmLevel> levels = Holm({0.01, 0.04, 0.03, 0.005}, 0.05);
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_TRUE(levels[3].rejected);
  EXPECT_DOUBLE_EQ(levels[3].alpha, 0.05 / 4);
  EXPECT_TRUE(levels[0].rejected);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.05 / 3);
  EXPECT_FALSE(levels[2].rejected);
  EXPECT_DOUBLE_EQ(levels[2].alpha, 0.05 / 2);
  // 0.04 < 0.05, but the walk has stopped: the level stays where it was.
  EXPECT_FALSE(levels[1].rejected);
  EXPECT_DOUBLE_EQ(levels[1].alpha, 0.05 / 2);
}

TEST(HolmTest, ALoneMemberIsNotAdjusted) {
  const std::vector<HolmLevel> levels = Holm({0.04}, 0.05);
  EXPECT_TRUE(levels[0].rejected);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.05);
}

TEST(HolmTest, MembersWithoutEvidenceMakeTheOthersStricter) {
  EXPECT_TRUE(Holm({0.02, 0.04}, 0.05)[0].rejected);
  EXPECT_FALSE(Holm({0.02, 1, 1}, 0.05)[0].rejected);
}

TEST(HolmTest, TiesKeepTheOrderOfTheInput) {
  const std::vector<HolmLevel> levels = Holm({0.001, 0.001}, 0.05);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.025);
  EXPECT_DOUBLE_EQ(levels[1].alpha, 0.05);
}

TEST(HolmTest, AnEmptyFamilyHasNoLevels) { EXPECT_TRUE(Holm({}, 0.05).empty()); }

}  // namespace
}  // namespace warpledger::analysis
