// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/random_effects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace warpledger::analysis {
namespace {

constexpr double kLeastFloor = 1e-5;
constexpr double kLeastDf = 0.1;
constexpr double kMostDf = 1000;

// Sums over the boards of one comparison.
struct Sums {
  double n = 0;
  double weight = 0;    // W
  double mean = 0;      // mu^
  double q = 0;         // Q
  double variance = 0;  // of the v_i
  double log_variance = 0;
  double error_squared = 0;
};

Sums SumsOf(absl::Span<const BoardEffect> boards, const SpreadPrior& prior) {
  Sums sums;
  double size = 0;
  for (const BoardEffect& board : boards) size += board.effect;
  size /= static_cast<double>(boards.size());
  for (const BoardEffect& board : boards) {
    const double variance = prior.Variance(board.standard_error, size);
    sums.n += 1;
    sums.weight += 1 / variance;
    sums.mean += board.effect / variance;
    sums.variance += variance;
    sums.log_variance += std::log(variance);
    sums.error_squared += board.standard_error * board.standard_error;
  }
  sums.mean /= sums.weight;
  for (const BoardEffect& board : boards) {
    const double distance = board.effect - sums.mean;
    sums.q += distance * distance / prior.Variance(board.standard_error, size);
  }
  return sums;
}

// The prior's logarithms, so that the search knows no bounds.
using Point = std::array<double, 4>;

SpreadPrior PriorAt(const Point& point) {
  return {.floor = kLeastFloor + std::exp(point[0]),
          .scale = std::exp(point[1]),
          .df = std::clamp(std::exp(point[2]), kLeastDf, kMostDf),
          .slope = std::exp(point[3])};
}

Point Along(const Point& from, const Point& to, double share) {
  Point point;
  for (size_t i = 0; i < point.size(); ++i) point[i] = from[i] + share * (to[i] - from[i]);
  return point;
}

// The least of `function`, from a simplex around `start` (Nelder and Mead, "A simplex method for
// function minimization", Computer Journal 7, 1965).
template <typename Function>
Point Minimum(const Function& function, const Point& start) {
  using Vertex = std::pair<double, Point>;
  constexpr int kSteps = 400;
  constexpr double kEnough = 1e-7;  // of a log-likelihood
  constexpr size_t kDimensions = std::tuple_size_v<Point>;
  std::array<Vertex, kDimensions + 1> simplex;
  for (size_t i = 0; i < simplex.size(); ++i) {
    Point point = start;
    if (i > 0) point[i - 1] += 1;
    simplex[i] = {function(point), point};
  }
  for (int step = 0; step < kSteps; ++step) {
    std::sort(simplex.begin(), simplex.end());
    if (simplex.back().first - simplex.front().first < kEnough) break;
    Point centre = {};
    for (size_t i = 0; i + 1 < simplex.size(); ++i) {
      for (size_t k = 0; k < kDimensions; ++k) centre[k] += simplex[i].second[k] / kDimensions;
    }
    Vertex& worst = simplex.back();
    const auto at = [&](double share) {
      const Point point = Along(centre, worst.second, share);
      return Vertex{function(point), point};
    };
    const Vertex reflected = at(-1);
    if (reflected.first < simplex.front().first) {
      worst = std::min(reflected, at(-2));
    } else if (reflected.first < simplex[kDimensions - 1].first) {
      worst = reflected;
    } else if (const Vertex inside = at(reflected.first < worst.first ? -0.5 : 0.5);
               inside.first < std::min(reflected.first, worst.first)) {
      worst = inside;
    } else {
      for (size_t i = 1; i < simplex.size(); ++i) {
        const Point point = Along(simplex[0].second, simplex[i].second, 0.5);
        simplex[i] = {function(point), point};
      }
    }
  }
  return std::min_element(simplex.begin(), simplex.end())->second;
}

}  // namespace

double PooledEffect::BetweenBoardsSd() const {
  return std::sqrt(
      std::max(0.0, reproducibility_sd * reproducibility_sd - repeatability_sd * repeatability_sd));
}

PooledEffect PoolEffects(absl::Span<const BoardEffect> boards, const SpreadPrior& prior) {
  const Sums sums = SumsOf(boards, prior);
  PooledEffect pooled;
  pooled.mean = sums.mean;
  pooled.repeatability_sd = std::sqrt(sums.error_squared / sums.n);
  pooled.df = prior.df + sums.n - 1;
  if (pooled.df <= 0) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    pooled.mean_error = pooled.further_error = pooled.reproducibility_sd = kInfinity;
    return pooled;
  }
  const double factor = (prior.df + sums.q) / pooled.df;
  const double variance = sums.variance / sums.n;
  pooled.mean_error = std::sqrt(factor / sums.weight);
  pooled.further_error = std::sqrt(factor * (1 / sums.weight + variance));
  pooled.reproducibility_sd = std::sqrt(factor * variance);
  return pooled;
}

double PriorLogLikelihood(absl::Span<const std::vector<BoardEffect>> comparisons,
                          const SpreadPrior& prior) {
  double total = 0;
  for (const std::vector<BoardEffect>& boards : comparisons) {
    if (boards.size() < 2) continue;
    const Sums sums = SumsOf(boards, prior);
    const double more = sums.n - 1;
    const double df = prior.df;
    total += std::lgamma((df + more) / 2) - std::lgamma(df / 2) - more / 2 * std::log(df) -
             sums.log_variance / 2 - std::log(sums.weight) / 2 -
             (df + more) / 2 * std::log1p(sums.q / df);
  }
  return total;
}

SpreadPrior FitPrior(absl::Span<const std::vector<BoardEffect>> comparisons,
                     const SpreadPrior& otherwise) {
  const auto several = std::count_if(comparisons.begin(), comparisons.end(),
                                     [](const auto& boards) { return boards.size() > 1; });
  if (several < kLeastComparisons) return otherwise;
  const auto loss = [&](const Point& point) {
    return -PriorLogLikelihood(comparisons, PriorAt(point));
  };
  // Thrice, because a simplex can shrink before it is there.
  constexpr Point kStart = {-7.5, 0, 0.5, -4.6};  // 0.05%, as records see, 1.6, 1%
  return PriorAt(Minimum(loss, Minimum(loss, Minimum(loss, kStart))));
}

}  // namespace warpledger::analysis
