// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/cluster_median.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"

namespace warpledger::analysis {
namespace {

constexpr BootstrapOptions kOptions = {.resamples = 20000, .seed = 42};

TEST(ClusterMedianTest, EstimateIsTheMedianOfAllValues) {
  const ClusterMedian median({{1, 2, 3}, {10}, {}}, kOptions);
  EXPECT_DOUBLE_EQ(median.estimate(), 2.5);
  EXPECT_EQ(median.n_clusters(), 2);
  EXPECT_EQ(median.n_values(), 4);
}

TEST(ClusterMedianTest, TheMeanOfMediansCountsEachClusterOnce) {
  const std::vector<std::vector<double>> values = {{1, 2, 3}, {10}, {}};
  const ClusterMedian median(values, kOptions);
  EXPECT_DOUBLE_EQ(median.MeanOfMedians(), 6);
  EXPECT_DOUBLE_EQ(median.MeanOfMedians(), MediansOf(values).mean) << "as verdicts have it";
}

TEST(ClusterMedianTest, EqualSeedsGiveEqualIntervalsToTheBit) {
  const std::vector<std::vector<double>> values = {{1, 2, 3, 4}, {2, 3, 4, 9}, {0, 1, 2, 2}};
  const ClusterMedian a(values, kOptions);
  const ClusterMedian b(values, kOptions);
  EXPECT_EQ(a.Bootstrap(0.95).low, b.Bootstrap(0.95).low);
  EXPECT_EQ(a.Bootstrap(0.95).high, b.Bootstrap(0.95).high);
}

// The medians of resamples as one would write it: each is copied and sorted.
std::vector<double> PlainMedians(const std::vector<std::vector<double>>& clusters,
                                 const BootstrapOptions& options) {
  Random random(options.seed);
  const auto n = static_cast<uint32_t>(clusters.size());
  std::vector<double> medians;
  for (int i = 0; i < options.resamples; ++i) {
    std::vector<double> drawn;
    for (uint32_t slot = 0; slot < n; ++slot) {
      const std::vector<double>& cluster = clusters[random.Below(n)];
      for (const double value : cluster) {
        const bool inside = options.inside_clusters || n == 1;
        const auto size = static_cast<uint32_t>(cluster.size());
        drawn.push_back(inside ? cluster[random.Below(size)] : value);
      }
    }
    medians.push_back(Median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return medians;
}

TEST(ClusterMedianTest, IntervalsAreThoseOfSortedResamplesToTheBit) {
  Random random(7);
  for (const int n_clusters : {1, 2, 5, 6, 7, 12}) {
    for (const bool inside : {false, true}) {
      std::vector<std::vector<double>> clusters(static_cast<size_t>(n_clusters));
      for (std::vector<double>& cluster : clusters) {
        const uint32_t size = 1 + random.Below(9);  // uneven, with equal values
        for (uint32_t i = 0; i < size; ++i) cluster.push_back(0.1 * random.Below(20));
      }
      const BootstrapOptions options = {.resamples = 501, .seed = 3, .inside_clusters = inside};
      const std::vector<double> plain = PlainMedians(clusters, options);
      const ClusterMedian median(clusters, options);
      for (const double confidence : {0.1, 0.5, 0.95, 0.998}) {
        const Interval interval = median.Bootstrap(confidence);
        EXPECT_EQ(interval.low, SortedQuantile(plain, 0.5 * (1 - confidence)));
        EXPECT_EQ(interval.high, SortedQuantile(plain, 1 - 0.5 * (1 - confidence)));
      }
    }
  }
}

TEST(ClusterMedianTest, ResamplesOfOneValuePerClusterFollowTheMultinomial) {
  // Three clusters of one value: the median of three draws is the largest value
  // when two or three draws hit it: 7 of 27 cases.
  const ClusterMedian median({{1}, {2}, {3}}, {.resamples = 100000, .seed = 5});
  // So the 1 - 7/27 quantile is where 2 turns into 3.
  const double edge = 7.0 / 27;
  EXPECT_EQ(median.Bootstrap(1 - 2 * (edge - 0.01)).high, 3);
  EXPECT_EQ(median.Bootstrap(1 - 2 * (edge + 0.01)).high, 2);
  EXPECT_EQ(median.Bootstrap(1 - 2 * (edge - 0.01)).low, 1);
  EXPECT_EQ(median.Bootstrap(1 - 2 * (edge + 0.01)).low, 2);
}

TEST(ClusterMedianTest, AnEvenResampleTakesTheMeanOfTheMiddleTwo) {
  // One cluster of {0, 1}: draws are 00, 01, 10, 11, so medians 0, 0.5, 0.5, 1.
  const ClusterMedian median({{0, 1}}, {.resamples = 100000, .seed = 6});
  EXPECT_EQ(median.Bootstrap(0.4).low, 0.5);
  EXPECT_EQ(median.Bootstrap(0.4).high, 0.5);
  EXPECT_EQ(median.Bootstrap(0.6).low, 0);
  EXPECT_EQ(median.Bootstrap(0.6).high, 1);
}

TEST(ClusterMedianTest, StudentIntervalIsMeanPlusMinusTTimesStandardError) {
  // Medians 1, 2, 3: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.30265.
  const ClusterMedian median({{1, 1, 1}, {2}, {3, 3}}, kOptions);
  EXPECT_NEAR(median.Student(0.95).low, 2 - 4.30265 / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(median.Student(0.95).high, 2 + 4.30265 / std::sqrt(3.0), 1e-5);
}

TEST(ClusterMedianTest, StudentHasOneDegreeOfFreedomLessThanClusters) {
  // Medians 1 to 5: mean 3, standard error sqrt(2.5 / 5), t(0.975, 4) = 2.77645.
  const ClusterMedian five({{1}, {2}, {3}, {4}, {5}}, kOptions);
  EXPECT_NEAR(five.Student(0.95).high, 3 + 2.77645 * std::sqrt(0.5), 1e-5);
}

TEST(ClusterMedianTest, EnvelopeHoldsBothIntervalsAndBothEstimates) {
  const ClusterMedian median({{1, 2, 8}, {2, 3, 9, 9}, {4, 5, 6}}, kOptions);
  for (const double confidence : {0.5, 0.9, 0.95, 0.999}) {
    const Interval envelope = median.Envelope(confidence);
    EXPECT_LE(envelope.low, median.Bootstrap(confidence).low);
    EXPECT_LE(envelope.low, median.Student(confidence).low);
    EXPECT_GE(envelope.high, median.Bootstrap(confidence).high);
    EXPECT_GE(envelope.high, median.Student(confidence).high);
    EXPECT_LE(envelope.low, median.estimate());
    EXPECT_GE(envelope.high, median.estimate());
    EXPECT_LE(envelope.low, median.MeanOfMedians());
    EXPECT_GE(envelope.high, median.MeanOfMedians());
  }
}

TEST(ClusterMedianTest, MoreConfidenceIsNeverNarrower) {
  const ClusterMedian median({{1, 2, 8}, {2, 3, 9, 9}, {4, 5, 6}}, kOptions);
  Interval inner = median.Envelope(0.5);
  for (const double confidence : {0.8, 0.95, 0.99, 0.9999}) {
    const Interval outer = median.Envelope(confidence);
    EXPECT_LE(outer.low, inner.low);
    EXPECT_GE(outer.high, inner.high);
    inner = outer;
  }
}

TEST(ClusterMedianTest, OneClusterHasNoStudentInterval) {
  const ClusterMedian median({{1, 2, 3, 4, 5}}, kOptions);
  EXPECT_TRUE(std::isinf(median.Student(0.95).high));
  EXPECT_EQ(median.Envelope(0.95).high, median.Bootstrap(0.95).high);
}

TEST(ClusterMedianTest, TwentyThousandResamplesOf150ValuesTakeUnderASecond) {
  Random random(1);
  std::vector<std::vector<double>> clusters(3, std::vector<double>(50));
  for (auto& cluster : clusters) {
    for (double& value : cluster) value = random.Uniform();
  }
  const std::clock_t start = std::clock();
  const ClusterMedian median(clusters, kOptions);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(median.Bootstrap(0.95).low, median.Bootstrap(0.95).high);
  // About 10 ms of the processor in a Release build; the slack is for Debug builds.
  EXPECT_LT(seconds, 1.0);
}

}  // namespace
}  // namespace warpledger::analysis
