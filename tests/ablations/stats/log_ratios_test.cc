// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/log_ratios.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ablations/stats/distributions.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using Clusters = std::vector<std::vector<double>>;

TEST(PairedTest, SamplesOfOneProcessAndBlockMakeAPair) {
  const std::vector<Timing> base = {{.process = 0, .block = 0, .us = 10},
                                    {.process = 0, .block = 1, .us = 12},
                                    {.process = 1, .block = 0, .us = 30}};
  const std::vector<Timing> candidate = {{.process = 1, .block = 0, .us = 15},
                                         {.process = 0, .block = 1, .us = 6}};
  const std::vector<Pair> pairs = PairUp(base, candidate);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].base.us, 12);
  EXPECT_EQ(pairs[0].candidate.us, 6);
  EXPECT_EQ(pairs[1].base.process, 1);
}

TEST(PairedTest, AFasterCandidateHasALogRatioAboveZero) {
  const std::vector<Pair> pairs = {{{.process = 2, .us = 10}, {.process = 2, .us = 5}},
                                   {{.process = 2, .us = 10}, {.process = 2, .us = 20}},
                                   {{.process = 5, .us = 3}, {.process = 5, .us = 3}}};
  const double ln2 = std::log(2.0);
  EXPECT_THAT(
      LogRatiosByProcess(pairs),
      ElementsAre(ElementsAre(DoubleNear(ln2, 1e-12), DoubleNear(-ln2, 1e-12)), ElementsAre(0.0)));
}

TEST(PairedTest, CyclesAreTimesTheClock) {
  const std::vector<Pair> pairs = {
      {{.process = 2, .us = 10, .sm_mhz = 1500}, {.process = 2, .us = 10, .sm_mhz = 1200}}};
  EXPECT_THAT(LogCycleRatiosByProcess(pairs),
              ElementsAre(ElementsAre(DoubleNear(std::log(1.25), 1e-12))));
}

TEST(PairedTest, LogTimesAreGroupedByProcess) {
  const std::vector<Timing> timings = {
      {.process = 1, .us = 1}, {.process = 0, .us = M_E}, {.process = 1, .us = 1}};
  EXPECT_THAT(LogTimesByProcess(timings),
              ElementsAre(ElementsAre(DoubleNear(1, 1e-12)), ElementsAre(0.0, 0.0)));
}

constexpr BootstrapOptions kFast = {.resamples = 1000, .seed = 7};

// About normal: the sum of twelve uniform numbers, less six.
double Normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return sum;
}

Clusters Draw(Random& random, int processes, double mean, double between, double within) {
  Clusters clusters;
  for (int p = 0; p < processes; ++p) {
    const double centre = mean + between * Normal(random);
    std::vector<double> values;
    for (int block = 0; block < 12; ++block) values.push_back(centre + within * Normal(random));
    clusters.push_back(values);
  }
  return clusters;
}

TEST(UnpairedLogRatioTest, WelchsIntervalIsTheOneComputedByHand) {
  // Medians 1, 2, 3 and 0, 4: means 2 and 2, squared errors 1/3 and 4.
  const UnpairedLogRatio ratio({{1}, {2}, {3}}, {{0}, {4}}, kFast);
  const double half_width = StudentCritical(0.05, 1) * std::sqrt(1.0 / 3 + 4);
  EXPECT_NEAR(ratio.Welch(0.95).low, -half_width, 1e-9);
  EXPECT_NEAR(ratio.Welch(0.95).high, half_width, 1e-9);
  EXPECT_EQ(ratio.n_base(), 3);
  EXPECT_EQ(ratio.n_candidate(), 2);
  EXPECT_EQ(ratio.n_clusters(), 2);
}

TEST(UnpairedLogRatioTest, AFasterCandidateIsAboveZero) {
  Random random(1);
  const UnpairedLogRatio ratio(Draw(random, 5, std::log(110), 0.001, 0.002),
                               Draw(random, 5, std::log(100), 0.001, 0.002), kFast);
  EXPECT_NEAR(ratio.estimate(), std::log(1.1), 0.003);
  EXPECT_GT(ratio.Envelope(0.95).low, 0);
}

TEST(UnpairedLogRatioTest, TheEnvelopeHoldsBothIntervalsAndTheEstimate) {
  Random random(2);
  for (int trial = 0; trial < 20; ++trial) {
    const UnpairedLogRatio ratio(Draw(random, 3, 0, 0.01, 0.05), Draw(random, 4, 0, 0.02, 0.01),
                                 kFast);
    for (const double confidence : {0.5, 0.95, 0.999}) {
      const Interval envelope = ratio.Envelope(confidence);
      for (const Interval inner : {ratio.Welch(confidence), ratio.Bootstrap(confidence),
                                   Interval{ratio.estimate(), ratio.estimate()}}) {
        EXPECT_LE(envelope.low, inner.low);
        EXPECT_GE(envelope.high, inner.high);
      }
    }
  }
}

TEST(UnpairedLogRatioTest, NoiseInsideProcessesCountsWhereTheirMediansHappenToAgree) {
  // Both processes of either side have the median 0, and values all over.
  const Clusters wild = {{-0.5, -0.2, 0, 0.3, 0.4}, {-0.4, -0.3, 0, 0.2, 0.5}};
  const UnpairedLogRatio ratio(wild, wild, kFast);
  EXPECT_EQ(ratio.Welch(0.95).high, 0);
  EXPECT_GT(ratio.Envelope(0.95).high, 0.1);
}

TEST(UnpairedLogRatioTest, TestAndIntervalAgree) {
  Random random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const UnpairedLogRatio ratio(Draw(random, 4, 0.01, 0.005, 0.01),
                                 Draw(random, 3, 0, 0.005, 0.01), kFast);
    const double p = ratio.PValue(0);
    ASSERT_GT(p, 0);
    ASSERT_LE(p, 1);
    const auto holds = [&](double alpha) {
      const Interval interval = ratio.Envelope(1 - alpha);
      return interval.low <= 0 && interval.high >= 0;
    };
    EXPECT_TRUE(holds(0.99 * p));
    if (p < 0.99) {
      EXPECT_FALSE(holds(std::min(1.01 * p, 0.999)));
    }
  }
}

TEST(UnpairedLogRatioTest, IdenticalSidesHaveThePValueOne) {
  const Clusters same = {{1, 2}, {2, 3}};
  EXPECT_EQ(UnpairedLogRatio(same, same, kFast).estimate(), 0);
  EXPECT_NEAR(UnpairedLogRatio(same, same, kFast).PValue(0), 1, 1e-9);
}

TEST(UnpairedLogRatioTest, ThePValueIsNeverUnderWhatTheBootstrapSees) {
  const UnpairedLogRatio ratio({{0}, {0}}, {{1}, {1}}, kFast);
  EXPECT_DOUBLE_EQ(ratio.PValue(0), 2.0 / 1001);
}

TEST(UnpairedLogRatioTest, OneProcessOnEitherSideTellsNothing) {
  const Clusters two = {{1, 1.1}, {1.05, 1.1}};
  for (const UnpairedLogRatio& ratio :
       {UnpairedLogRatio({{5, 5.1}}, two, kFast), UnpairedLogRatio(two, {{5, 5.1}}, kFast)}) {
    EXPECT_TRUE(std::isinf(ratio.Envelope(0.95).low));
    EXPECT_TRUE(std::isinf(ratio.Envelope(0.95).high));
    EXPECT_NEAR(ratio.PValue(0), 1, 1e-9);
  }
}

TEST(UnpairedLogRatioTest, TheSameInputGivesTheSameBounds) {
  Random random(4);
  const Clusters base = Draw(random, 3, 0, 0.01, 0.02);
  const Clusters candidate = Draw(random, 3, 0, 0.01, 0.02);
  const Interval first = UnpairedLogRatio(base, candidate, kFast).Bootstrap(0.9);
  const Interval again = UnpairedLogRatio(base, candidate, kFast).Bootstrap(0.9);
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
}

// Coverage at 95% over simulated pairs of records, on sides of equal and of
// unequal size and spread.
struct Setting {
  int n_base;
  int n_candidate;
  double between_base;
  double between_candidate;
};

TEST(UnpairedLogRatioTest, TheEnvelopeHoldsItsLevel) {
  Random random(5);
  for (const Setting s : {Setting{3, 3, 0.01, 0.01}, Setting{5, 5, 0.01, 0.01},
                          Setting{3, 8, 0.02, 0.005}, Setting{5, 5, 0, 0}}) {
    constexpr int kTrials = 400;
    int covered = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const UnpairedLogRatio ratio(Draw(random, s.n_base, 0.3, s.between_base, 0.01),
                                   Draw(random, s.n_candidate, 0.1, s.between_candidate, 0.01),
                                   {.resamples = 200, .seed = static_cast<uint64_t>(trial)});
      const Interval interval = ratio.Envelope(0.95);
      covered += interval.low <= 0.2 && 0.2 <= interval.high ? 1 : 0;
    }
    // 0.95 less two standard errors of 400 trials.
    EXPECT_GE(covered, 0.928 * kTrials) << s.n_base << " against " << s.n_candidate;
  }
}

}  // namespace
}  // namespace warpledger::analysis
