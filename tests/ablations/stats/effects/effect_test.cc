// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace warpledger::analysis {
namespace {

// t(0.975, 2) = 4.30265, t(0.80, 2) = 1.06066.
TEST(EffectTest, IntervalAndLeastEffectAreStudents) {
  const Effect effect = {.log_ratio = 0.1, .error = 0.01, .df = 2};
  EXPECT_NEAR(effect.At(0.95).low, 0.1 - 0.0430265, 1e-6);
  EXPECT_NEAR(effect.At(0.95).high, 0.1 + 0.0430265, 1e-6);
  EXPECT_NEAR(effect.Least(0.05), (4.30265 + 1.06066) * 0.01, 1e-6);
  EXPECT_NEAR(effect.PValue(0.1 - 0.0430265), 0.05, 1e-6);
}

// Two one-sided tests at 5% each use the 90% interval: t(0.95, 2) = 2.91999.
TEST(EffectTest, EquivalenceIsOfTwoOneSidedTests) {
  const double limit = std::log1p(0.01);
  const double error = limit / 2.91999;
  EXPECT_TRUE((Effect{0, 0.99 * error, 2}.IsEquivalent(0.05, 0.01)));
  EXPECT_FALSE((Effect{0, 1.01 * error, 2}.IsEquivalent(0.05, 0.01)));
  EXPECT_FALSE((Effect{0.02, error / 100, 2}.IsEquivalent(0.05, 0.01)));
  EXPECT_FALSE((Effect{-0.02, error / 100, 2}.IsEquivalent(0.05, 0.01)));
}

TEST(EffectTest, AnEffectDecidesAtItsDecisionPValueAndNotBelowIt) {
  for (const double log_ratio : {0.0, 0.004, -0.008, 0.012, -0.05}) {
    const Effect effect = {.log_ratio = log_ratio, .error = 0.004, .df = 5};
    const double p = effect.DecisionPValue(0.01);
    const auto decides = [&](double alpha) {
      const Interval interval = effect.At(1 - alpha);
      return interval.low > 0 || interval.high < 0 || effect.IsEquivalent(alpha, 0.01);
    };
    EXPECT_TRUE(decides(1.0001 * p)) << log_ratio;
    EXPECT_FALSE(decides(0.9999 * p)) << log_ratio;
  }
}

TEST(EffectTest, AnInfiniteErrorSaysNothing) {
  const Effect effect = {.log_ratio = 1, .error = std::numeric_limits<double>::infinity(), .df = 1};
  EXPECT_EQ(effect.PValue(0), 1);
  EXPECT_EQ(effect.DecisionPValue(0.01), 1);
}

std::vector<VarianceEstimate> OneToTen(double df) {
  std::vector<VarianceEstimate> estimates;
  for (int i = 1; i <= 10; ++i) estimates.push_back({i * 1e-6, df});
  return estimates;
}

// By SciPy 1.17.1: special.digamma, special.polygamma and Newton's method.
TEST(ModerationTest, VariancesShrinkTowardsThatOfTheRun) {
  std::vector<VarianceEstimate> estimates = OneToTen(4);
  estimates.back() = {40e-6, 2};
  const std::vector<VarianceEstimate> moderated = Moderated(estimates);
  EXPECT_NEAR(moderated[0].variance, 4.00974824e-06, 1e-13);
  EXPECT_NEAR(moderated[8].variance, 7.13411268e-06, 1e-13);
  EXPECT_NEAR(moderated[9].variance, 1.42037121e-05, 1e-12);
  EXPECT_NEAR(moderated[0].df, 10.24208302, 1e-7);
  EXPECT_NEAR(moderated[9].df, 8.24208302, 1e-7);
}

TEST(ModerationTest, VariancesThatScatterByChanceAloneHaveTheDegreesOfFreedomOfAll) {
  const std::vector<VarianceEstimate> moderated = Moderated(OneToTen(2));
  EXPECT_EQ(moderated[0].df, 20);
  EXPECT_NEAR(moderated[0].variance, (20 * 8.065993754965712e-06 + 2 * 1e-6) / 22, 1e-15);
}

// Of ten comparisons with one base and 2 degrees of freedom each: 4 · 10 · 2 / (10 + 3).
TEST(ModerationTest, VariancesThatShareABaseHaveFewerDegreesOfFreedom) {
  const std::vector<VarianceEstimate> estimates = OneToTen(2);
  std::vector<Sides> one_base;
  for (int i = 1; i <= 10; ++i) one_base.emplace_back(0, i);
  const std::vector<VarianceEstimate> moderated = Moderated(estimates, one_base);
  EXPECT_NEAR(moderated[0].df, 80.0 / 13, 1e-12);
  EXPECT_NEAR(AllDegreesOfFreedom(estimates, one_base), 80.0 / 13, 1e-12);
  EXPECT_EQ(AllDegreesOfFreedom(estimates, {}), 20);
}

TEST(ModerationTest, DegreesOfFreedomOfAllFollowWhatComparisonsShare) {
  // (2 + 2)^2 / (2 + 2 + 2 r^2 2)
  const std::vector<VarianceEstimate> two = {{1, 2}, {1, 2}};
  EXPECT_DOUBLE_EQ(AllDegreesOfFreedom(two, {{{0, 1}, {2, 3}}}), 4);
  for (const Sides& other : {Sides{0, 2}, Sides{2, 0}, Sides{1, 2}, Sides{2, 1}}) {
    EXPECT_DOUBLE_EQ(AllDegreesOfFreedom(two, {{{0, 1}, other}}), 3.2);
  }
  EXPECT_DOUBLE_EQ(AllDegreesOfFreedom(two, {{{0, 1}, {0, 1}}}), 2) << "the same, twice";
  EXPECT_DOUBLE_EQ(AllDegreesOfFreedom(two, {{{0, 1}, {1, 0}}}), 2) << "the same, turned round";
  // (6 + 2)^2 / (6 + 2 + 2 / 4 · 2)
  EXPECT_DOUBLE_EQ(AllDegreesOfFreedom({{{1, 6}, {1, 2}}}, {{{0, 1}, {0, 2}}}), 64.0 / 9);
}

TEST(ModerationTest, NoVarianceLosesItsOwnDegreesOfFreedom) {
  std::vector<VarianceEstimate> estimates = OneToTen(1);
  estimates[0].df = 30;
  std::vector<Sides> one_base;
  for (int i = 1; i <= 10; ++i) one_base.emplace_back(0, i);
  ASSERT_LT(AllDegreesOfFreedom(estimates, one_base), 30.5);
  EXPECT_GE(Moderated(estimates, one_base)[0].df, 30);
}

TEST(ModerationTest, AFewVariancesStandAlone) {
  std::vector<VarianceEstimate> estimates = OneToTen(4);
  estimates.pop_back();
  const std::vector<VarianceEstimate> moderated = Moderated(estimates);
  EXPECT_EQ(moderated[0].variance, 1e-6);
  EXPECT_EQ(moderated[0].df, 4);
}

TEST(ModerationTest, ValuesThatAgreeToTheLastDigitAreNotExact) {
  EXPECT_EQ(Moderated({{0, 4}})[0].variance, 1e-10);
}

TEST(ModerationTest, AnotherVarianceIsModeratedByWhatTheRunShares) {
  std::vector<VarianceEstimate> estimates = OneToTen(4);
  estimates.back() = {40e-6, 2};
  const VariancePrior prior = PriorOf(estimates);
  EXPECT_EQ(prior.all_df, 38);
  const VarianceEstimate more = Moderate({estimates[0].variance, 9}, prior);
  EXPECT_NEAR(more.df, Moderate(estimates[0], prior).df + 5, 1e-9);
  EXPECT_NEAR(more.variance * more.df, prior.df * prior.variance + 9 * estimates[0].variance,
              1e-15);
  EXPECT_EQ(Moderate({3e-6, 4}, PriorOf({{3e-6, 4}})).df, 4) << "it stands alone";
}

TEST(SumDegreesOfFreedomTest, IsTheSumForEqualTermsAndLessForOthers) {
  EXPECT_NEAR(SumDegreesOfFreedom({{2e-6, 4}, {2e-6, 4}, {2e-6, 4}}), 12, 1e-12);
  // (4 + 1)^2 / (16 / 4 + 1 / 9)
  EXPECT_NEAR(SumDegreesOfFreedom({{4e-6, 4}, {1e-6, 9}}), 6.0810811, 1e-6);
  EXPECT_NEAR(SumDegreesOfFreedom({{1, 4}, {1e-9, 1000}}), 4, 1e-6);
}

}  // namespace
}  // namespace warpledger::analysis
