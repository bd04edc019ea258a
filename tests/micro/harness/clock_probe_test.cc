// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/clock_probe.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpledger::harness {
namespace {

TEST(MhzBetween, IsTheMedianOfTheSmsWhateverTheOrderOfTheirStamps) {
  const std::vector<ClockStamp> begin = {{0, 100, 5000}, {1, 900, 5010}, {2, 0, 5020}};
  const std::vector<ClockStamp> end = {
      {2, 1'500'000, 1'005'020}, {0, 1'980'100, 1'005'000}, {1, 1'900'900, 1'005'010}};
  EXPECT_DOUBLE_EQ(MhzBetween(begin, end), 1900);
}

TEST(MhzBetween, LeavesOutSmsThatStampedOnce) {
  EXPECT_DOUBLE_EQ(MhzBetween({{3, 0, 0}, {4, 0, 0}}, {{4, 3000, 2000}, {5, 9000, 2000}}), 1500);
}

TEST(MhzBetween, IsZeroWhereNothingCanBeSaid) {
  EXPECT_EQ(MhzBetween({}, {}), 0);
  EXPECT_EQ(MhzBetween({{0, 1, 1}}, {{1, 2, 2}}), 0);
  // No time passed: stamps that were never written.
  EXPECT_EQ(MhzBetween({{0, 0, 0}}, {{0, 0, 0}}), 0);
  EXPECT_EQ(MhzBetween({{0, 5, 20}}, {{0, 9, 10}}), 0);
}

}  // namespace
}  // namespace warpledger::harness
