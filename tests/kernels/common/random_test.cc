// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "gtest/gtest.h"

namespace warpledger {
namespace {

// The published generator's sequences for two seeds.
TEST(SplitMix64, GivesThePublishedSequence) {
  SplitMix64 zero(0);
  for (const uint64_t expected : {0xe220a8397b1dcdafull, 0x6e789e6aa1b965f4ull,
                                  0x06c45d188009454full, 0xf88bb8a8724c81ecull}) {
    EXPECT_EQ(zero.Next(), expected);
  }
  SplitMix64 random(1234567);
  for (const uint64_t expected :
       {6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
        4593380528125082431ull, 16408922859458223821ull}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(SplitMix64, DrawsUniformNumbersFromZeroUpToButNotOne) {
  SplitMix64 random(1);
  constexpr int kDraws = 100000;
  std::array<int, 10> tenths{};
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Uniform();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    ++tenths[static_cast<size_t>(x * 10)];
  }
  // 5 standard deviations of a binomial count.
  const double spread = 5 * std::sqrt(kDraws * 0.1 * 0.9);
  for (const int count : tenths) EXPECT_NEAR(count, kDraws / 10, spread);
}

TEST(SplitMix64, DrawsBelowABoundEveryValueAndNoOther) {
  SplitMix64 random(2);
  EXPECT_EQ(random.Below(1), 0u);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t x = random.Below(counts.size());
    ASSERT_LT(x, counts.size());
    ++counts[x];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10000, 5 * std::sqrt(kDraws * (1 / 7.0) * (6 / 7.0)));
  }
}

TEST(SplitMix64, DrawsNormalNumbersWithTheMomentsOfTheNormalDistribution) {
  SplitMix64 random(3);
  constexpr int kDraws = 400000;
  double sum = 0;
  double square = 0;
  double cube = 0;
  double fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    square += x * x;
    cube += x * x * x;
    fourth += x * x * x * x;
    beyond_two += std::fabs(x) > 2 ? 1 : 0;
  }
  // Five standard errors; the variances of x, x^2, x^3 and x^4 are 1, 2, 15, 96.
  const auto tolerance = [](double variance) { return 5 * std::sqrt(variance / kDraws); };
  EXPECT_NEAR(sum / kDraws, 0.0, tolerance(1));
  EXPECT_NEAR(square / kDraws, 1.0, tolerance(2));
  EXPECT_NEAR(cube / kDraws, 0.0, tolerance(15));
  EXPECT_NEAR(fourth / kDraws, 3.0, tolerance(96));
  EXPECT_NEAR(beyond_two / static_cast<double>(kDraws), 0.0455, tolerance(0.0455 * 0.9545));
}

TEST(MixSeed, NamesStreamsThatDiffer) {
  std::set<uint64_t> seeds;
  constexpr uint64_t kSeeds = 32;
  constexpr uint64_t kParts = 64;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (uint64_t part = 0; part < kParts; ++part) seeds.insert(MixSeed(seed, part));
  }
  EXPECT_EQ(seeds.size(), kSeeds * kParts);
  EXPECT_EQ(MixSeed(5, 6), MixSeed(5, 6));
  EXPECT_NE(MixSeed(5, 6), MixSeed(6, 5));
}

// From the FNV authors' table of test vectors.
TEST(HashName, IsFnv1a) {
  EXPECT_EQ(HashName(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(HashName("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(HashName("foobar"), 0x85944171f73967e8ull);
  EXPECT_NE(HashName("mission_a"), HashName("mission_b"));
}

TEST(RandomOrder, IsAPermutation) {
  SplitMix64 random(4);
  for (const int n : {0, 1, 2, 11, 100}) {
    std::vector<int> order = RandomOrder(n, random);
    std::sort(order.begin(), order.end());
    std::vector<int> expected(static_cast<size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  }
}

TEST(RandomOrder, PutsEachElementInEachPlaceEquallyOften) {
  SplitMix64 random(5);
  constexpr int kOrders = 30000;
  std::array<std::array<int, 3>, 3> counts{};
  for (int i = 0; i < kOrders; ++i) {
    const std::vector<int> order = RandomOrder(3, random);
    for (size_t place = 0; place < 3; ++place) ++counts[place][static_cast<size_t>(order[place])];
  }
  for (const auto& place : counts) {
    for (const int count : place) {
      EXPECT_NEAR(count, kOrders / 3, 5 * std::sqrt(kOrders * (1 / 3.0) * (2 / 3.0)));
    }
  }
}

TEST(RandomOrder, RepeatsForASeedAndDiffersBetweenSeeds) {
  SplitMix64 a(6);
  SplitMix64 b(6);
  SplitMix64 c(7);
  const std::vector<int> order = RandomOrder(20, a);
  EXPECT_EQ(order, RandomOrder(20, b));
  EXPECT_NE(order, RandomOrder(20, c));
}

}  // namespace
}  // namespace warpledger
