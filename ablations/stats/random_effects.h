// SPDX-License-Identifier: Apache-2.0
// What several boards say of one effect, and what one more board of their kind would say.
//
// Model. Board i measured the effect y_i (a log-ratio) with the standard error e_i within its
// record. For one comparison
//   y_i ~ Normal(mu, f v_i),  v_i = floor^2 + scale e_i^2 + (slope s)^2,  f ~ df / chi-square(df):
// boards differ by more than their records see, by more where an effect is large, and by a factor f
// that differs between comparisons. s = 1 - exp(-|m|), with m the mean of the y_i, is the share of
// the slower side's time by which the two sides differ.
// `floor`, `scale`, `slope` and `df` are a SpreadPrior: they come from other comparisons, by
// FitPrior().
// Given them, K boards give, with w_i = 1 / v_i and W = sum w_i,
//   mu^ = sum w_i y_i / W,  Q = sum w_i (y_i - mu^)^2,  f^ = (df + Q) / (df + K - 1),
//   standard error of mu^:                  sqrt(f^ / W)
//   of one further board about mu^:         sqrt(f^ (1 / W + v)),  v the mean of the v_i,
// each with Student's t at df + K - 1 degrees of freedom. One board is enough: f^ is then 1.
//
// Sources: without a prior (df = 0), mu^ and its error are those of Hartung and Knapp, "A refined
// method for the meta-analysis of controlled clinical trials with binary outcome", Statistics in
// Medicine 20 (2001), and of Sidik and Jonkman (2002). The shrinking of f is Smyth's, "Linear
// models and empirical Bayes methods", SAGMB 3 (2004), with weights. ISO 5725-1 calls the scatter
// within a laboratory, here a board, repeatability, and that between laboratories reproducibility.
//
// Units: all effects, errors and deviations are of log-ratios.
//
//   const PooledEffect pooled = PoolEffects({{0.095, 0.002}, {0.101, 0.003}}, prior);
//   Interval on_another_board = pooled.Further().At(0.95);

#pragma once

#include <cmath>
#include <vector>

#include "ablations/stats/effects/effect.h"
#include "absl/types/span.h"

namespace warpledger::analysis {

struct BoardEffect {
  double effect = 0;
  double standard_error = 0;  // within the board's record
};

struct SpreadPrior {
  double floor = 0;  // the deviation of a board whose record has no error, where no effect is
  double scale = 1;  // of the variance within records
  double df = 0;     // how alike comparisons are: few, and their factors f differ much
  double slope = 0;  // what the deviation gains by the size of the effect

  // Of a board on an effect of about this size.
  double Variance(double standard_error, double effect) const {
    const double of_size = slope * -std::expm1(-std::abs(effect));
    return floor * floor + scale * standard_error * standard_error + of_size * of_size;
  }
};

struct PooledEffect {
  double mean = 0;
  double mean_error = 0;          // standard error of the mean over boards
  double further_error = 0;       // of what one further board would say, about the mean
  double repeatability_sd = 0;    // s_r: root mean square of the standard errors
  double reproducibility_sd = 0;  // s_R: of what one record says, over boards
  double df = 0;

  // s_L: between boards, beyond what records see of themselves; 0 where there is no more.
  double BetweenBoardsSd() const;
  // The mean over boards, and what one further board would say.
  Effect Mean() const { return {mean, mean_error, df}; }
  Effect Further() const { return {mean, further_error, df}; }
};

// At least one board. Infinite errors where neither prior nor a second board says how boards
// differ.
PooledEffect PoolEffects(absl::Span<const BoardEffect> boards, const SpreadPrior& prior);

// The prior under which `comparisons` are likeliest: restricted maximum likelihood, mu integrated
// out, found by Nelder and Mead's simplex. Comparisons of one board say nothing. The floor is 1e-5
// at least, which is what six digits of a ratio can show, and df is from 0.1 to 1000.
// Fewer than kLeastComparisons of two boards give `otherwise`.
inline constexpr int kLeastComparisons = 20;
SpreadPrior FitPrior(absl::Span<const std::vector<BoardEffect>> comparisons,
                     const SpreadPrior& otherwise);
// The logarithm of that likelihood, without its constant.
double PriorLogLikelihood(absl::Span<const std::vector<BoardEffect>> comparisons,
                          const SpreadPrior& prior);

}  // namespace warpledger::analysis
