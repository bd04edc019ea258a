// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/proportion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

double Binomial(int n, int k, double p) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                  k * std::log(p) + (n - k) * std::log1p(-p));
}

// P(X >= k).
double UpperTail(int n, int k, double p) {
  double sum = 0;
  for (int i = k; i <= n; ++i) sum += Binomial(n, i, p);
  return sum;
}

TEST(ProportionTest, NoneAndAllHaveClosedForms) {
  // (1 - p)^n = tail.
  EXPECT_NEAR(ClopperPearson(0, 300, 0.95).high, 1 - std::pow(0.025, 1.0 / 300), 1e-9);
  EXPECT_EQ(ClopperPearson(0, 300, 0.95).low, 0);
  EXPECT_NEAR(ClopperPearson(100, 100, 0.90).low, std::pow(0.05, 1.0 / 100), 1e-9);
  EXPECT_EQ(ClopperPearson(100, 100, 0.90).high, 1);
}

TEST(ProportionTest, EachEndLeavesItsTailToTheBinomial) {
  for (const auto& [k, n] : {std::pair{1, 10}, {5, 10}, {9, 10}, {15, 300}, {97, 100}}) {
    const Interval interval = ClopperPearson(k, n, 0.95);
    EXPECT_NEAR(UpperTail(n, k, interval.low), 0.025, 1e-8) << k << " of " << n;
    EXPECT_NEAR(1 - UpperTail(n, k + 1, interval.high), 0.025, 1e-8) << k << " of " << n;
  }
}

TEST(ProportionTest, TheBinomialsLowerTailIsTheSumOfItsTerms) {
  for (const auto& [k, n] : {std::pair{0, 10}, {5, 10}, {9, 10}, {193, 210}}) {
    EXPECT_NEAR(BinomialAtMost(k, n, 0.95), 1 - UpperTail(n, k + 1, 0.95), 1e-9)
        << k << " of " << n;
  }
  EXPECT_EQ(BinomialAtMost(10, 10, 0.95), 1);
  EXPECT_EQ(BinomialAtMost(0, 0, 0.95), 1);
}

TEST(ProportionTest, NoTrialsSayNothing) {
  EXPECT_EQ(ClopperPearson(0, 0, 0.95).low, 0);
  EXPECT_EQ(ClopperPearson(0, 0, 0.95).high, 1);
}

}  // namespace
}  // namespace warpledger::analysis
