// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

TEST(StudentTest, CriticalValuesMatchThePrintedTables) {
  EXPECT_NEAR(StudentCritical(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(StudentCritical(0.05, 2), 4.30265, 1e-5);
  EXPECT_NEAR(StudentCritical(0.05, 4), 2.77645, 1e-5);
  EXPECT_NEAR(StudentCritical(0.01, 7), 3.49948, 1e-5);
  EXPECT_NEAR(StudentCritical(0.05, 30), 2.04227, 1e-5);
  EXPECT_NEAR(StudentCritical(0.05, 1000), 1.96234, 1e-5);
}

TEST(StudentTest, TwoDegreesOfFreedomAgreeWithTheClosedForm) {
  // P(|T| > t) = 1 - t / sqrt(2 + t^2), so t = q sqrt(2 / (1 - q^2)), q = 1 - alpha.
  for (const double alpha : {0.5, 0.1, 0.05, 0.05 / 35, 1e-6}) {
    const double q = 1 - alpha;
    const double expected = q * std::sqrt(2 / (alpha * (1 + q)));
    EXPECT_NEAR(StudentCritical(alpha, 2) / expected, 1, 1e-9) << alpha;
  }
}

TEST(StudentTest, OneDegreeOfFreedomIsCauchy) {
  for (const double t : {0.0, 0.5, 1.0, 10.0, 1e4}) {
    EXPECT_NEAR(StudentTwoSidedTail(t, 1), 1 - 2 * std::atan(t) / M_PI, 1e-12) << t;
  }
}

TEST(StudentTest, TailAndCriticalValueAreInverse) {
  for (const int df : {1, 2, 3, 5, 9, 100}) {
    for (const double alpha : {0.9, 0.4, 0.05, 0.001, 1e-8}) {
      EXPECT_NEAR(StudentTwoSidedTail(StudentCritical(alpha, df), df) / alpha, 1, 1e-9)
          << df << " " << alpha;
    }
  }
}

TEST(StudentTest, PartsOfADegreeOfFreedomCount) {
  // scipy.stats.t 1.17.1: isf(0.025, 1.5), isf(0.0005, 0.7), 2 sf(3, 2.6).
  EXPECT_NEAR(StudentCritical(0.05, 1.5), 6.016663104427933, 1e-9);
  EXPECT_NEAR(StudentCritical(0.001, 0.7) / 9790.117523121438, 1, 1e-9);
  EXPECT_NEAR(StudentTwoSidedTail(3, 2.6), 0.06909842959037182, 1e-12);
}

TEST(StudentTest, NoDegreesOfFreedomIsNotANumber) {
  EXPECT_TRUE(std::isnan(StudentCritical(0.05, 0)));
  EXPECT_TRUE(std::isnan(StudentTwoSidedTail(1, 0)));
}

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
