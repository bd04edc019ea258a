// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/random_effects.h"

#include <gtest/gtest.h>

#include <cmath>

namespace warpledger::analysis {
namespace {

const std::vector<BoardEffect> kFive = {
    {0.095, 0.002}, {0.101, 0.003}, {0.089, 0.004}, {0.12, 0.006}, {0.097, 0.0025}};

TEST(RandomEffectsTest, WithoutAPriorItIsHartungKnappSidikJonkman) {
  // statsmodels 0.15.0: combine_effects(effect, error**2, method_re="dl", use_t=True) has tau2,
  // mean_effect_re, sd_eff_w_re_hksj and the last interval of conf_int().
  const double tau2 = 3.973374497415239e-05;
  const PooledEffect pooled = PoolEffects(kFive, {.floor = std::sqrt(tau2), .scale = 1, .df = 0});
  EXPECT_NEAR(pooled.mean, 0.09904098365822717, 1e-12);
  EXPECT_NEAR(pooled.mean_error, 0.004600846741014253, 1e-12);
  EXPECT_EQ(pooled.df, 4);
  EXPECT_NEAR(pooled.Mean().At(0.95).low, 0.08626699, 1e-8);
  EXPECT_NEAR(pooled.Mean().At(0.95).high, 0.11181498, 1e-8);
}

// With a prior: the intervals and the p-value that scipy 1.17.1 finds by quadrature over f
// (integrate.quad, optimize.brentq), which uses none of the closed forms.
TEST(RandomEffectsTest, APriorShrinksTheFactorOfFiveBoards) {
  const PooledEffect pooled = PoolEffects(kFive, {.floor = 0.003, .scale = 1.5, .df = 1.5});
  EXPECT_NEAR(pooled.mean, 0.09778928919182082, 1e-12);
  EXPECT_NEAR(pooled.Mean().At(0.95).low, 0.0895325694244554, 1e-8);
  EXPECT_NEAR(pooled.Mean().At(0.95).high, 0.10604600895918626, 1e-8);
  EXPECT_NEAR(pooled.Further().At(0.95).low, 0.07528210320054901, 1e-8);
  EXPECT_NEAR(pooled.Further().At(0.95).high, 0.12029647518309264, 1e-8);
  EXPECT_NEAR(pooled.Further().PValue(0), 6.334570757472125e-05, 1e-9);
}

TEST(RandomEffectsTest, OneBoardHasThePriorAlone) {
  const PooledEffect pooled =
      PoolEffects({{0.095, 0.002}}, {.floor = 0.003, .scale = 1.5, .df = 1.5});
  EXPECT_NEAR(pooled.Mean().At(0.95).low, 0.07169756591354931, 1e-8);
  EXPECT_NEAR(pooled.Further().At(0.95).high, 0.12795461832136434, 1e-8);
  EXPECT_NEAR(pooled.Further().PValue(0), 0.010412795103996663, 1e-8);
  EXPECT_NEAR(pooled.reproducibility_sd, std::sqrt(0.003 * 0.003 + 1.5 * 4e-6), 1e-15);
  EXPECT_EQ(pooled.repeatability_sd, 0.002);
  EXPECT_NEAR(pooled.BetweenBoardsSd(), std::sqrt(0.003 * 0.003 + 0.5 * 4e-6), 1e-15);
}

TEST(RandomEffectsTest, BoardsDifferByMoreWhereTheEffectIsLarge) {
  const SpreadPrior prior = {.floor = 0.003, .scale = 0, .df = 1.5, .slope = 0.01};
  EXPECT_EQ(prior.Variance(0.1, 0), 9e-6);
  // Twice as fast: half of the slower side's time; half as fast: the same half.
  EXPECT_NEAR(prior.Variance(0.1, std::log(2)), 9e-6 + 25e-6, 1e-15);
  EXPECT_NEAR(prior.Variance(0.1, -std::log(2)), 9e-6 + 25e-6, 1e-15);
  // At most the slope, however large the effect.
  EXPECT_NEAR(prior.Variance(0.1, 50), 9e-6 + 1e-4, 1e-15);
  EXPECT_NEAR(PoolEffects({{std::log(2), 0.002}}, prior).reproducibility_sd, std::sqrt(34e-6),
              1e-15);
}

TEST(RandomEffectsTest, OneBoardWithoutAPriorSaysNothingOfAnother) {
  const PooledEffect pooled = PoolEffects({{0.095, 0.002}}, {.floor = 0.003, .df = 0});
  EXPECT_EQ(pooled.mean, 0.095);
  EXPECT_TRUE(std::isinf(pooled.further_error));
  EXPECT_EQ(pooled.Further().PValue(0), 1);
}

TEST(RandomEffectsTest, BoardsThatAgreeBetterThanTheirErrorsHaveNoSpreadOfTheirOwn) {
  const PooledEffect pooled = PoolEffects({{0.1, 0.01}, {0.1, 0.01}}, {.floor = 0, .df = 0});
  EXPECT_EQ(pooled.BetweenBoardsSd(), 0);
}

// 40 comparisons on two to four boards, by a formula that the other implementation repeated.
std::vector<std::vector<BoardEffect>> FormulaComparisons() {
  constexpr double kFactor[] = {0.3, 0.6, 1, 2, 5};
  std::vector<std::vector<BoardEffect>> comparisons;
  for (int c = 0; c < 40; ++c) {
    std::vector<BoardEffect>& boards = comparisons.emplace_back();
    for (int i = 0; i < 2 + c % 3; ++i) {
      const double error = 0.001 * (1 + (c + i) % 4);
      const double spread = kFactor[c % 5] * (0.0005 + 1.5 * error);
      boards.push_back({0.02 * std::sin(1 + c) + spread * std::sin(7 * c + 3 * i * i + 1), error});
    }
  }
  return comparisons;
}

TEST(FitPriorTest, ItsLikelihoodIsTheMultivariateTOfContrasts) {
  // scipy.stats.multivariate_t 1.17.1, of the differences to each comparison's last board.
  const auto comparisons = FormulaComparisons();
  const double first = PriorLogLikelihood(comparisons, {.floor = 0.002, .scale = 1.2, .df = 2});
  const double second = PriorLogLikelihood(comparisons, {.floor = 0.004, .scale = 0.5, .df = 5});
  EXPECT_NEAR(second - first, -9.071844927196196, 1e-9);
  const double third =
      PriorLogLikelihood(comparisons, {.floor = 0.002, .scale = 1.2, .df = 2, .slope = 0.01});
  const double fourth =
      PriorLogLikelihood(comparisons, {.floor = 0.004, .scale = 0.5, .df = 5, .slope = 0.05});
  EXPECT_NEAR(fourth - third, -8.939268699615354, 1e-9);
}

TEST(FitPriorTest, FindsTheLikeliestPrior) {
  // scipy.optimize.minimize, 1.17.1, on that multivariate t.
  const auto comparisons = FormulaComparisons();
  const SpreadPrior prior = FitPrior(comparisons, {});
  EXPECT_NEAR(prior.floor, 0.00078971722, 1e-5);
  EXPECT_NEAR(prior.scale, 0.92836849, 2e-3);
  EXPECT_NEAR(prior.df, 1.21079157, 1e-3);
  EXPECT_NEAR(prior.slope, 0.07048957, 1e-3);
  const SpreadPrior start = {.floor = 0.002, .scale = 1.2, .df = 2};
  EXPECT_NEAR(PriorLogLikelihood(comparisons, prior) - PriorLogLikelihood(comparisons, start),
              271.20049350154676 - 269.4600004259825, 1e-6);
}

TEST(FitPriorTest, FewComparisonsKeepTheOtherPrior) {
  auto comparisons = FormulaComparisons();
  comparisons.resize(kLeastComparisons - 1);
  comparisons.resize(100, {{0.1, 0.01}});  // of one board
  EXPECT_EQ(FitPrior(comparisons, {.floor = 0.5}).floor, 0.5);
}

}  // namespace
}  // namespace warpledger::analysis
