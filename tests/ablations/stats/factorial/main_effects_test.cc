// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/factorial/main_effects.h"

#include <gtest/gtest.h>

namespace warpledger::analysis {
namespace {

// A constant, main effects of switching on, and one interaction of +1/-1 columns.
std::vector<double> GainsOfRuns(const std::vector<uint32_t>& cells,
                                const std::vector<double>& effects, int a = 0, int b = 0,
                                double interaction = 0) {
  std::vector<double> gains;
  for (const uint32_t cell : cells) {
    double gain = 0.7;
    for (size_t i = 0; i < effects.size(); ++i) gain += cell >> i & 1u ? effects[i] : 0;
    const auto sign = [&](int t) { return cell >> t & 1u ? 1.0 : -1.0; };
    gains.push_back(gain + interaction * sign(a) * sign(b));
  }
  return gains;
}

double Apply(const Contrast& contrast, const std::vector<double>& gains) {
  double sum = 0;
  for (size_t i = 0; i < gains.size(); ++i) sum += contrast.weights[i] * gains[i];
  return sum;
}

// 2^(4-1): the fourth is the product of three.
const std::vector<uint32_t> kHalf = {0b0000, 0b1001, 0b1010, 0b0011,
                                     0b1100, 0b0101, 0b0110, 0b1111};

TEST(MainEffectsTest, EffectsWithoutInteractionsAreFoundExactly) {
  const auto effects = MainEffects::Create(4, kHalf).value();
  const std::vector<double> truth = {0.3, -0.1, 0.02, 0.5};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(Apply(effects.Effect(i), GainsOfRuns(kHalf, truth)), truth[static_cast<size_t>(i)],
                1e-12);
  }
}

TEST(MainEffectsTest, AFractionOfResolutionFourHidesNoInteractionOfTwo) {
  const auto effects = MainEffects::Create(4, kHalf).value();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(effects.Aliases(i).empty()) << i;
}

TEST(MainEffectsTest, AnAliasMovesTheEstimateByTwiceItsCoefficient) {
  // Without two of the eight cells the rest is no longer regular.
  const std::vector<uint32_t> cells(kHalf.begin(), kHalf.begin() + 6);
  const auto effects = MainEffects::Create(4, cells).value();
  const std::vector<double> truth = {0.3, -0.1, 0.02, 0.5};
  int aliased = 0;
  for (int i = 0; i < 4; ++i) {
    for (int a = 0; a < 4; ++a) {
      for (int b = a + 1; b < 4; ++b) {
        double coefficient = 0;
        for (const MainEffects::Alias& alias : effects.Aliases(i)) {
          if (alias.a == a && alias.b == b) coefficient = alias.coefficient;
        }
        aliased += coefficient != 0;
        EXPECT_NEAR(Apply(effects.Effect(i), GainsOfRuns(cells, truth, a, b, 0.05)),
                    truth[static_cast<size_t>(i)] + 2 * coefficient * 0.05, 1e-9);
      }
    }
  }
  EXPECT_GT(aliased, 0);
}

TEST(MainEffectsTest, ACommonShiftOfAllGainsChangesNothing) {
  const auto effects = MainEffects::Create(4, kHalf);
  double sum = 0;
  for (const double weight : effects->Effect(2).weights) sum += weight;
  EXPECT_NEAR(sum, 0, 1e-12);
}

TEST(MainEffectsTest, CellsThatCanNotTellAreRefused) {
  EXPECT_FALSE(MainEffects::Create(4, {0, 1, 2, 4}).ok()) << "too few";
  EXPECT_FALSE(MainEffects::Create(2, {0, 3, 0}).ok()) << "twice";
  EXPECT_FALSE(MainEffects::Create(2, {0, 3}).ok()) << "too few";
  // Toggles 0 and 1 are always on together.
  EXPECT_FALSE(MainEffects::Create(3, {0, 3, 4, 7}).ok());
}

}  // namespace
}  // namespace warpledger::analysis
