// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace warpledger::analysis
