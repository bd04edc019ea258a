// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/line_fit.h"

#include "gtest/gtest.h"

namespace warpledger::harness {
namespace {

TEST(FitLine, FindsTheSlopeAndTheInterceptOfAnExactLine) {
  const auto fit = FitLine({1, 2, 3, 5}, {37, 41, 45, 53}).value();
  EXPECT_DOUBLE_EQ(fit.slope, 4);
  EXPECT_DOUBLE_EQ(fit.intercept, 33);
  EXPECT_DOUBLE_EQ(fit.r2, 1);
}

TEST(FitLine, LosesR2WhenPointsLeaveTheLine) {
  // By hand: xx = 5, xy = 6, yy = 17.
  const auto fit = FitLine({1, 2, 3, 4}, {1, 5, 2, 6}).value();
  EXPECT_NEAR(fit.slope, 1.2, 1e-12);
  EXPECT_NEAR(fit.intercept, 0.5, 1e-12);
  EXPECT_NEAR(fit.r2, 36.0 / (5 * 17), 1e-12);
}

TEST(FitLine, CallsAConstantPerfectlyExplained) {
  const auto fit = FitLine({1, 2, 3}, {7, 7, 7}).value();
  EXPECT_EQ(fit.slope, 0);
  EXPECT_EQ(fit.r2, 1);
}

TEST(FitLine, RefusesPointsThatMakeNoLine) {
  EXPECT_FALSE(FitLine({}, {}).ok());
  EXPECT_FALSE(FitLine({2, 2, 2}, {1, 2, 3}).ok());
  EXPECT_FALSE(FitLine({1, 2}, {1, 2, 3}).ok());
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleValues) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 100, 2}), 3);
}

}  // namespace
}  // namespace warpledger::harness
