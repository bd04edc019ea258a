// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace warpledger::analysis {
namespace {

TEST(RandomTest, SplitMix64MatchesItsPublishedSequence) {
  // The first outputs from seed 1234567, as listed for the algorithm at Rosetta Code.
  uint64_t state = 1234567;
  EXPECT_EQ(SplitMix64(state), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(state), 3203168211198807973u);
  EXPECT_EQ(SplitMix64(state), 9817491932198370423u);
}

TEST(RandomTest, EqualSeedsGiveEqualSequencesAndOthersDiffer) {
  Random a(7);
  Random b(7);
  Random c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    differs = differs || value != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(RandomTest, BelowIsUniformOverABoundThatIsNoPowerOfTwo) {
  Random random(1);
  std::array<int, 24> counts{};
  constexpr int kDraws = 240000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.Below(24));
  double chi_squared = 0;
  for (const int count : counts) {
    const double expected = kDraws / 24.0;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  // 23 degrees of freedom: 99.9% of uniform draws stay below 49.7.
  EXPECT_LT(chi_squared, 49.7);
}

TEST(RandomTest, BelowOneIsZero) {
  Random random(3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomTest, EachNamedFigureHasASeedOfItsOwn) {
  const std::set<uint64_t> seeds = {
      StreamSeed(1, "verdict:wmma_pv:small"), StreamSeed(1, "verdict:wmma_pv:medium"),
      StreamSeed(2, "verdict:wmma_pv:small"), StreamSeed(1, "time:wmma_pv:small")};
  EXPECT_EQ(seeds.size(), 4u);
}

}  // namespace
}  // namespace warpledger::analysis
