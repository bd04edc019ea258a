// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/quantile.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

TEST(QuantileTest, MedianOfAnOddNumberIsTheMiddleValue) {
  EXPECT_DOUBLE_EQ(Median({9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(Median({4}), 4);
}

TEST(QuantileTest, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(Median({1, 2}), 1.5);
  EXPECT_DOUBLE_EQ(Median({10, 1, 4, 2}), 3);
}

TEST(QuantileTest, MatchesTypeSevenAsNumPyComputesIt) {
  // numpy.quantile([1, 2, 4, 8, 16], [0.1, 0.25, 0.4, 0.9])
  const std::vector<double> sorted = {1, 2, 4, 8, 16};
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.25), 2);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.4), 3.2);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.9), 12.8);
}

TEST(QuantileTest, EndsAreTheExtremesAndBeyondIsClamped) {
  const std::vector<double> sorted = {1, 2, 3};
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 1), 3);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, -0.5), 1);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 1.5), 3);
}

TEST(QuantileTest, NothingHasNoMedian) { EXPECT_TRUE(std::isnan(Median({}))); }

}  // namespace
}  // namespace warpledger::analysis
