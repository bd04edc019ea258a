// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/factorial/attribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

using Gains = std::vector<std::vector<std::vector<double>>>;

// Bits of three toggles.
constexpr uint32_t kA = 1;
constexpr uint32_t kB = 2;
constexpr uint32_t kC = 4;

Lattice Of(int toggles, std::vector<uint32_t> cells) {
  return Lattice::Create(toggles, std::move(cells)).value();
}

// All subsets of `toggles` that `allowed` lets exist.
Lattice Where(int toggles, const std::function<bool(uint32_t)>& allowed) {
  std::vector<uint32_t> cells;
  for (uint32_t mask = 0; mask < 1u << toggles; ++mask) {
    if (allowed(mask)) cells.push_back(mask);
  }
  return Of(toggles, cells);
}

Lattice Full(int toggles) {
  return Where(toggles, [](uint32_t) { return true; });
}

// One block without noise: what the contrasts say of the values themselves.
CellGains Exactly(const Lattice& lattice, const std::function<double(uint32_t)>& gain) {
  std::vector<double> block;
  for (const uint32_t cell : lattice.cells()) block.push_back(gain(cell));
  return CellGains({{block}}, {.resamples = 100, .seed = 1});
}

std::vector<double> ShapleyValues(const Lattice& lattice, const CellGains& gains) {
  std::vector<double> values;
  for (int toggle = 0; toggle < lattice.n_toggles(); ++toggle) {
    values.push_back(gains.Estimate(lattice.Shapley(toggle)));
  }
  return values;
}

double AdditiveGain(uint32_t mask) {
  return (mask & kA ? 0.5 : 0) + (mask & kB ? 0.25 : 0) + (mask & kC ? -0.125 : 0);
}

TEST(LatticeTest, AnAdditiveGameGivesEachToggleItsOwnGainEverywhere) {
  const Lattice lattice = Full(3);
  const CellGains gains = Exactly(lattice, AdditiveGain);
  const double planted[] = {0.5, 0.25, -0.125};
  for (int toggle = 0; toggle < 3; ++toggle) {
    EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(toggle)), planted[toggle]);
    EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Shapley(toggle)), planted[toggle]);
    EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Difference(*lattice.FirstEdge(toggle))),
                     planted[toggle]);
    EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Difference(*lattice.LastEdge(toggle))),
                     planted[toggle]);
    EXPECT_EQ(lattice.MainEffect(toggle).n_terms, 4);
    for (int other = 0; other < 3; ++other) {
      if (other == toggle) continue;
      EXPECT_NEAR(gains.Estimate(lattice.Interaction(toggle, other)), 0, 1e-15);
    }
  }
}

TEST(LatticeTest, APureInteractionIsSharedInHalves) {
  const Lattice lattice = Full(2);
  const CellGains gains = Exactly(lattice, [](uint32_t mask) { return mask == 3 ? 0.6 : 0.0; });
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(0)), 0.3);  // the mean of 0 and 0.6
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.EffectGiven(0, 1, false)), 0);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.EffectGiven(0, 1, true)), 0.6);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Interaction(0, 1)), 0.6);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Interaction(1, 0)), 0.6);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Shapley(0)), 0.3);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Shapley(1)), 0.3);
}

// Shapley's glove game: c has a left glove, a and b a right one each; a pair is
// worth 1. The values are 1/6, 1/6 and 2/3.
TEST(LatticeTest, TheGloveGameHasItsKnownValues) {
  const Lattice lattice = Full(3);
  const CellGains gains =
      Exactly(lattice, [](uint32_t mask) { return mask & kC && mask & (kA | kB) ? 1.0 : 0.0; });
  const std::vector<double> values = ShapleyValues(lattice, gains);
  EXPECT_NEAR(values[0], 1.0 / 6, 1e-12);
  EXPECT_NEAR(values[1], 1.0 / 6, 1e-12);
  EXPECT_NEAR(values[2], 2.0 / 3, 1e-12);
}

// b needs a: the cells are {}, a, ab. By hand: coalition {b} is worth what {} is.
// Orders ab: a adds 0.2, b 0.4; ba: b adds 0, a adds 0.6. So a = 0.4, b = 0.2.
TEST(LatticeTest, AToggleThatLacksItsNeedWaitsAndCountsWithIt) {
  const Lattice lattice = Of(2, {0, kA, kA | kB});
  const CellGains gains = Exactly(lattice, [](uint32_t mask) {
    return mask == 0 ? 0.0 : mask == kA ? 0.2 : 0.6;
  });
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Shapley(0)), 0.4);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.Shapley(1)), 0.2);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(0)), 0.2);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(1)), 0.4);
  EXPECT_EQ(lattice.MainEffect(0).n_terms, 1);
  EXPECT_EQ(lattice.Interaction(0, 1).n_terms, 0);  // b is never on without a
  EXPECT_EQ(lattice.LargestCell(kB), 0u);
}

// A chain a <- b <- c with gains 0.1, 0.3, 0.6 of the prefixes. By hand: a toggle's
// step is paid to whoever completes the prefix, so step k (0.1, 0.2, 0.3) is
// split evenly over the first k toggles.
TEST(LatticeTest, AChainSplitsEachStepOverAllThatItTook) {
  const Lattice lattice = Of(3, {0, kA, kA | kB, kA | kB | kC});
  const CellGains gains = Exactly(lattice, [](uint32_t mask) {
    return mask == 0 ? 0.0 : mask == kA ? 0.1 : mask == (kA | kB) ? 0.3 : 0.6;
  });
  const std::vector<double> values = ShapleyValues(lattice, gains);
  EXPECT_NEAR(values[0], 0.1 + 0.1 + 0.1, 1e-12);
  EXPECT_NEAR(values[1], 0.1 + 0.1, 1e-12);
  EXPECT_NEAR(values[2], 0.1, 1e-12);
}

TEST(LatticeTest, SharesAddUpToTheWholeGainOnEverySetOfCellsThatRulesCanMake) {
  // The mask of what each of four toggles needs; the last set can't all be on.
  const std::vector<std::vector<uint32_t>> rules = {{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 2, 4},
                                                    {0, 0, 3, 4}, {8, 8, 8, 0}, {0, 0, 0, 16}};
  Random random(7);
  for (const std::vector<uint32_t>& needs : rules) {
    const Lattice lattice = Where(4, [&](uint32_t mask) {
      for (int i = 0; i < 4; ++i) {
        if (mask >> i & 1u && (mask & needs[i]) != needs[i]) return false;
      }
      return true;
    });
    std::vector<double> block;
    for (const uint32_t cell : lattice.cells()) block.push_back(cell ? random.Uniform() : 0);
    const CellGains gains({{block}}, {.resamples = 100, .seed = 1});
    double sum = 0;
    for (const double value : ShapleyValues(lattice, gains)) sum += value;
    EXPECT_NEAR(sum, gains.Estimate(lattice.Total()), 1e-12);
    EXPECT_EQ(lattice.Total().n_terms, 1);
  }
}

TEST(LatticeTest, TheFirstAndLastPlacesAreTheLeastAndMostThatTheRulesAllow) {
  // c needs b.
  const Lattice lattice = Where(3, [](uint32_t mask) { return !(mask & kC) || mask & kB; });
  const auto cell = [&](size_t index) { return lattice.cells()[index]; };
  EXPECT_EQ(cell(lattice.FirstEdge(2)->first), kB);
  EXPECT_EQ(cell(lattice.FirstEdge(2)->second), kB | kC);
  EXPECT_EQ(cell(lattice.LastEdge(2)->first), kA | kB);
  EXPECT_EQ(cell(lattice.LastEdge(1)->first), kA);  // not with c, which needs it
  EXPECT_EQ(cell(lattice.FirstEdge(0)->first), 0u);
  EXPECT_EQ(cell(lattice.LastEdge(0)->first), kB | kC);
}

TEST(LatticeTest, AnUnusableCellTakesItsPairsAndTheShares) {
  Lattice lattice = Full(3);
  std::vector<bool> usable(8, true);
  usable[kA] = false;
  lattice.SetUsable(usable);
  // The broken cell's gain is nonsense and must not show.
  const CellGains gains =
      Exactly(lattice, [](uint32_t mask) { return mask == kA ? 99.0 : AdditiveGain(mask); });
  EXPECT_EQ(lattice.MainEffect(0).n_terms, 3);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(0)), 0.5);
  EXPECT_DOUBLE_EQ(gains.Estimate(lattice.MainEffect(1)), 0.25);
  EXPECT_EQ(lattice.EffectGiven(0, 1, true).n_terms, 1);
  EXPECT_NEAR(gains.Estimate(lattice.Interaction(0, 1)), 0, 1e-15);
  EXPECT_EQ(lattice.Shapley(1).n_terms, 0);
  EXPECT_EQ(lattice.Total().n_terms, 0);
  EXPECT_EQ(lattice.Difference(*lattice.FirstEdge(0)).n_terms, 0);
  EXPECT_EQ(lattice.Difference(*lattice.LastEdge(0)).n_terms, 1);
}

TEST(LatticeTest, RefusesWhatIsNoFactorial) {
  const auto message = [](int toggles, std::vector<uint32_t> cells) {
    return std::string(Lattice::Create(toggles, std::move(cells)).status().message());
  };
  EXPECT_NE(message(2, {1, 2, 3}).find("every toggle off is missing"), std::string::npos);
  EXPECT_NE(message(2, {0, 1, 1}).find("cell 1 is named twice"), std::string::npos);
  EXPECT_NE(message(2, {0, 4}).find("more than 2 toggles"), std::string::npos);
  EXPECT_NE(message(8, {0}).find("1 to 7 toggles, not 8"), std::string::npos);
  EXPECT_NE(message(0, {0}).find("1 to 7 toggles, not 0"), std::string::npos);
  // {a} and {b} without {a, b}: neither is the value of the coalition {a, b}.
  EXPECT_NE(message(2, {0, 1, 2}).find("coalition 3 has no largest cell"), std::string::npos);
}

// The difference of two cells, one of them the empty one, is what a verdict
// measures: both must say the same to the bit.
TEST(CellGainsTest, TwoCellsGiveTheIntervalOfTheClusterMedian) {
  Random random(3);
  Gains gains;
  std::vector<std::vector<double>> values;
  for (int process = 0; process < 3; ++process) {
    gains.emplace_back();
    values.emplace_back();
    for (int block = 0; block < 9 + process; ++block) {
      values.back().push_back(0.1 * process + random.Uniform());
      gains.back().push_back({0, values.back().back()});
    }
  }
  const BootstrapOptions options = {.resamples = 2000, .seed = 11};
  const CellGains cells(gains, options);
  const ClusterMedian median(values, options);
  const Lattice lattice = Of(1, {0, 1});
  EXPECT_DOUBLE_EQ(cells.Estimate(lattice.MainEffect(0)), median.MeanOfMedians());
  for (const double confidence : {0.8, 0.95, 0.999}) {
    const Interval interval = cells.Envelope(lattice.Shapley(0), confidence);
    EXPECT_DOUBLE_EQ(interval.low, median.Envelope(confidence).low);
    EXPECT_DOUBLE_EQ(interval.high, median.Envelope(confidence).high);
  }
}

TEST(CellGainsTest, EqualSeedsGiveEqualIntervalsAndOneProcessGivesOne) {
  const Gains gains = {{{0, 1, 2}, {0, 2, 5}, {0, 3, 4}}};
  const CellGains a(gains, {.resamples = 500, .seed = 9});
  const CellGains b(gains, {.resamples = 500, .seed = 9});
  const Contrast contrast = {.weights = {0, -1, 1}, .n_terms = 1};
  EXPECT_EQ(a.n_processes(), 1);
  EXPECT_EQ(a.Estimate(contrast), 2);  // 4 - 2
  EXPECT_EQ(a.Envelope(contrast, 0.9).low, b.Envelope(contrast, 0.9).low);
  EXPECT_TRUE(std::isfinite(a.Envelope(contrast, 0.9).high));
}

// 1% of noise per sample, 0.5% between processes: the interval of a main effect
// and of an interaction must hold the truth about as often as it says.
TEST(CellGainsTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  constexpr int kRuns = 400;
  const Lattice lattice = Full(3);
  Random random(17);
  const auto noise = [&random](double deviation) {
    double sum = 0;  // of 12 uniforms: variance 1
    for (int i = 0; i < 12; ++i) sum += random.Uniform();
    return deviation * (sum - 6);
  };
  int main_held = 0;
  int pair_held = 0;
  for (int run = 0; run < kRuns; ++run) {
    Gains gains;
    for (int process = 0; process < 5; ++process) {
      gains.emplace_back();
      std::vector<double> of_process;
      for (size_t cell = 0; cell < 8; ++cell) of_process.push_back(noise(0.005));
      for (int block = 0; block < 8; ++block) {
        std::vector<double> row;
        const double empty = noise(0.01);  // the empty cell's noise is in every gain
        for (const uint32_t cell : lattice.cells()) {
          row.push_back(cell == 0 ? 0
                                  : AdditiveGain(cell) + of_process[cell] - of_process[0] +
                                        noise(0.01) - empty);
        }
        gains.back().push_back(row);
      }
    }
    const CellGains cells(gains, {.resamples = 400, .seed = static_cast<uint64_t>(run)});
    const Interval main = cells.Envelope(lattice.MainEffect(0), 0.9);
    const Interval pair = cells.Envelope(lattice.Interaction(0, 1), 0.9);
    main_held += main.low <= 0.5 && 0.5 <= main.high ? 1 : 0;
    pair_held += pair.low <= 0 && 0 <= pair.high ? 1 : 0;
  }
  // 90% less three standard errors of 1.5%, and not so wide that it says nothing.
  EXPECT_GE(main_held, 0.855 * kRuns);
  EXPECT_GE(pair_held, 0.855 * kRuns);
  EXPECT_LE(main_held, 0.98 * kRuns);
  EXPECT_LE(pair_held, 0.98 * kRuns);
}

}  // namespace
}  // namespace warpledger::analysis
