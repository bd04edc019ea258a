// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/medians.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ablations/stats/simulated_run.h"

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

TEST(VarianceSplitTest, OneProcessCanNotBeSplit) {
  EXPECT_FALSE(SplitVariance({{1, 2, 3}}).has_value());
  EXPECT_FALSE(SplitVariance({{1, 2, 3}, {}}).has_value());
  EXPECT_FALSE(SplitVariance({}).has_value());
}

TEST(ProcessMediansTest, TheErrorIsThatOfTheMeanOfTheProcessesMedians) {
  const ProcessMedians medians = MediansOf({{1, 1, 1}, {}, {2, 2}, {3, 3, 3}});
  EXPECT_DOUBLE_EQ(medians.mean, 2);
  EXPECT_EQ(medians.variance, 1);
  EXPECT_EQ(medians.processes, 3);
  EXPECT_DOUBLE_EQ(medians.Alone().error, 1 / std::sqrt(3));
  EXPECT_EQ(medians.Alone().df, 2);
  EXPECT_TRUE(std::isinf(MediansOf({{1, 2}}).Alone().error)) << "one process knows no other";
}

TEST(ProcessMediansTest, EachProcessCountsOnceWhateverItHasOfValues) {
  EXPECT_DOUBLE_EQ(MediansOf({{1, 1, 1, 1, 1}, {2}, {6, 6}}).mean, 3);
}

TEST(VarianceSplitTest, ProcessesThatRepeatThemselvesDifferOnlyBetween) {
  // Medians 1, 2, 3: variance 1.
  const auto split = SplitVariance({{1, 1, 1}, {2, 2}, {3, 3, 3}});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->within, 0);
  EXPECT_DOUBLE_EQ(split->between, 1);
}

TEST(VarianceSplitTest, EqualProcessesDifferOnlyWithin) {
  // Distances from the median 2: 1, 0, 1 each.
  const auto split = SplitVariance({{1, 2, 3}, {1, 2, 3}});
  ASSERT_TRUE(split.has_value());
  EXPECT_DOUBLE_EQ(split->within, 1.4826);
  EXPECT_EQ(split->between, 0);
}

TEST(VarianceSplitTest, SimulatedSpreadsAreFoundAgainDespiteOutliers) {
  SimulatedRuns runs(
      {.noise_sd = 0.002, .outlier_share = 0.03, .process_sd = 0.004, .processes = 400}, 3);
  const auto split = SplitVariance(runs.NextLogRatios(1.1));
  ASSERT_TRUE(split.has_value());
  // A ratio has the noise of two arms.
  EXPECT_NEAR(split->within, 0.002 * std::sqrt(2.0), 0.0003);
  EXPECT_NEAR(split->between, 0.004, 0.0005);
}

}  // namespace
}  // namespace warpledger::analysis
