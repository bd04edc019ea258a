// SPDX-License-Identifier: Apache-2.0
#include "micro/break_even.h"

#include "gtest/gtest.h"

namespace warpledger::micro {
namespace {

TEST(BreakEven, LiesOnTheLineBetweenTwoPoints) {
  EXPECT_DOUBLE_EQ(*BreakEven({0, 10, 20}, {3, 1, 0}, 0.5), 15);
  EXPECT_DOUBLE_EQ(*BreakEven({0, 10, 20}, {3, 1, 0}, 0.25), 17.5);
}

TEST(BreakEven, IsThePointWhereThePointReachesTheThreshold) {
  EXPECT_DOUBLE_EQ(*BreakEven({0, 10, 20}, {3, 0.5, 0}, 0.5), 10);
}

TEST(BreakEven, IsWhereTheCurveStaysBelow) {
  EXPECT_DOUBLE_EQ(*BreakEven({0, 1, 2, 3}, {2, 0, 2, 0}, 1), 2.5);
}

TEST(BreakEven, IsNothingWhereTheCostStays) {
  EXPECT_EQ(BreakEven({0, 10}, {3, 2}, 1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(BreakEven, IsNothingWhereThereWasNoCost) {
  EXPECT_EQ(BreakEven({0, 10}, {0.5, 0}, 1).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(BreakEven, RefusesWhatIsNoCurve) {
  EXPECT_EQ(BreakEven({0, 10}, {3}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BreakEven({0}, {3}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BreakEven({0, 0}, {3, 0}, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace warpledger::micro
