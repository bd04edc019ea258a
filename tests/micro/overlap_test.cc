// SPDX-License-Identifier: Apache-2.0
#include "micro/overlap.h"

#include "gtest/gtest.h"

namespace warpledger::micro {
namespace {

double Hidden(const OverlapTimes& times) { return HiddenFraction(times).value(); }

TEST(HiddenFraction, IsOneWhenTheShorterAddsNothing) {
  EXPECT_DOUBLE_EQ(Hidden({.op = 400, .mma = 500, .both = 500}), 1);
  EXPECT_DOUBLE_EQ(Hidden({.op = 500, .mma = 400, .both = 500}), 1);
}

TEST(HiddenFraction, IsZeroWhenOneFollowsTheOther) {
  EXPECT_DOUBLE_EQ(Hidden({.op = 400, .mma = 500, .both = 900}), 0);
}

TEST(HiddenFraction, IsNegativeWhenTheyDisturbEachOther) {
  EXPECT_DOUBLE_EQ(Hidden({.op = 400, .mma = 500, .both = 1000}), -0.25);
}

TEST(HiddenFraction, IsAShareOfTheShorter) {
  EXPECT_DOUBLE_EQ(Hidden({.op = 100, .mma = 500, .both = 550}), 0.5);
  EXPECT_DOUBLE_EQ(Hidden({.op = 500, .mma = 100, .both = 550}), 0.5);
}

TEST(HiddenFraction, RefusesTimesThatCannotBeOfTheSameWork) {
  EXPECT_FALSE(HiddenFraction({.op = 0, .mma = 500, .both = 500}).ok());
  EXPECT_FALSE(HiddenFraction({.op = 500, .mma = -1, .both = 500}).ok());
  EXPECT_FALSE(HiddenFraction({.op = 400, .mma = 500, .both = 399}).ok());
  EXPECT_TRUE(HiddenFraction({.op = 400, .mma = 500, .both = 401}).ok());
}

TEST(BalancedOps, FillTheShareOfTheTime) {
  EXPECT_EQ(BalancedOps(/*share_cycles=*/240, /*op_cycles=*/8), 30);
  EXPECT_EQ(BalancedOps(256, 1), 256);
}

TEST(BalancedOps, AreAtLeastOne) { EXPECT_EQ(BalancedOps(10, 60), 1); }

}  // namespace
}  // namespace warpledger::micro
