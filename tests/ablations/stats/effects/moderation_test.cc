// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/moderation.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpledger::analysis {
namespace {

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

}  // namespace
}  // namespace warpledger::analysis
