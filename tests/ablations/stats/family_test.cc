// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/family.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ablations/stats/effects/effect.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

TEST(HolmTest, FollowsTheTextbookExample) {
  // Smallest to largest: 0.005 < 0.05/4, 0.01 < 0.05/3, 0.03 > 0.05/2: stop.
  const std::vector<HolmLevel> levels = Holm({0.01, 0.04, 0.03, 0.005}, 0.05);
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_TRUE(levels[3].rejected);
  EXPECT_DOUBLE_EQ(levels[3].alpha, 0.05 / 4);
  EXPECT_TRUE(levels[0].rejected);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.05 / 3);
  EXPECT_FALSE(levels[2].rejected);
  EXPECT_DOUBLE_EQ(levels[2].alpha, 0.05 / 2);
  // 0.04 < 0.05, but the walk has stopped: the level stays where it was.
  EXPECT_FALSE(levels[1].rejected);
  EXPECT_DOUBLE_EQ(levels[1].alpha, 0.05 / 2);
}

TEST(HolmTest, ALoneMemberIsNotAdjusted) {
  const std::vector<HolmLevel> levels = Holm({0.04}, 0.05);
  EXPECT_TRUE(levels[0].rejected);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.05);
}

TEST(HolmTest, MembersWithoutEvidenceMakeTheOthersStricter) {
  EXPECT_TRUE(Holm({0.02, 0.04}, 0.05)[0].rejected);
  EXPECT_FALSE(Holm({0.02, 1, 1}, 0.05)[0].rejected);
}

TEST(HolmTest, TiesKeepTheOrderOfTheInput) {
  const std::vector<HolmLevel> levels = Holm({0.001, 0.001}, 0.05);
  EXPECT_DOUBLE_EQ(levels[0].alpha, 0.025);
  EXPECT_DOUBLE_EQ(levels[1].alpha, 0.05);
}

TEST(HolmTest, AnEmptyFamilyHasNoLevels) { EXPECT_TRUE(Holm({}, 0.05).empty()); }

TEST(FalseCoverageTest, TheLevelIsTheShareOfTheFamilyThatDecides) {
  EXPECT_DOUBLE_EQ(FalseCoverageLevel({0.001, 0.2, 0.03}, 0.05), 0.05 * 2 / 3);
  EXPECT_DOUBLE_EQ(FalseCoverageLevel({0.01, 0.02, 0.03}, 0.05), 0.05);
  EXPECT_DOUBLE_EQ(FalseCoverageLevel({0.04}, 0.05), 0.05);
}

TEST(FalseCoverageTest, WithoutADecisionItIsThatOfTheFirst) {
  EXPECT_DOUBLE_EQ(FalseCoverageLevel({0.5, 0.2, 0.3, 1}, 0.05), 0.0125);
}

TEST(FalseCoverageTest, AMemberThatFailsAloneCanPassWithOthers) {
  // 0.024 > 0.05 / 3, but two of three pass at 0.0333: a step up.
  EXPECT_DOUBLE_EQ(FalseCoverageLevel({0.024, 0.025, 0.9}, 0.05), 0.05 * 2 / 3);
}

// Half of a family has no effect, the others have some; noise of 1%.
TEST(FalseCoverageTest, OfTheIntervalsThatDecideAtMostAlphaMissTheirTruth) {
  constexpr int kFamilies = 2000;
  constexpr int kMembers = 10;
  constexpr double kAlpha = 0.05;
  constexpr double kDelta = 0.01;
  Random random(3);
  const auto normal = [&] {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    return radius * std::cos(2 * M_PI * random.Uniform());
  };
  double missed_share = 0;
  for (int family = 0; family < kFamilies; ++family) {
    std::vector<Effect> effects;
    std::vector<double> truths;
    std::vector<double> p_values;
    for (int i = 0; i < kMembers; ++i) {
      truths.push_back(i % 2 == 0 ? 0 : 0.005 * i);
      effects.push_back({truths.back() + 0.01 * normal(), 0.01, 1000});
      p_values.push_back(effects.back().DecisionPValue(kDelta));
    }
    const double alpha = FalseCoverageLevel(p_values, kAlpha);
    double decided = 0;
    double missed = 0;
    for (int i = 0; i < kMembers; ++i) {
      const auto at = static_cast<size_t>(i);
      if (p_values[at] > alpha) continue;
      const Interval interval = effects[at].At(1 - alpha);
      decided += 1;
      missed += truths[at] < interval.low || truths[at] > interval.high;
    }
    if (decided > 0) missed_share += missed / decided / kFamilies;
  }
  EXPECT_LT(missed_share, kAlpha);
  EXPECT_GT(missed_share, kAlpha / 4) << "or the intervals are wider than they need be";
}

}  // namespace
}  // namespace warpledger::analysis
