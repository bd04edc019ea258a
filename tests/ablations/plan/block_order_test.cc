// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/block_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ablations/subjects/sdpa/designs/designs.h"

namespace warpledger::ablations {
namespace {

std::vector<std::string> NamesOf(const Design& design) {
  std::vector<std::string> names;
  for (const DesignArm& arm : design.arms) names.push_back(arm.name);
  names.emplace_back("floor:empty_kernel");
  return names;
}

// How often arm a goes before arm b in blocks 0 to `blocks` - 1, less how often after.
std::vector<std::vector<int>> Lead(const std::vector<std::string>& arms, int blocks,
                                   uint64_t seed) {
  std::vector<std::vector<int>> lead(arms.size(), std::vector<int>(arms.size()));
  for (int block = 0; block < blocks; ++block) {
    const std::vector<int> order = BlockOrder(seed, block, arms);
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) {
        ++lead[static_cast<size_t>(order[i])][static_cast<size_t>(order[j])];
        --lead[static_cast<size_t>(order[j])][static_cast<size_t>(order[i])];
      }
    }
  }
  return lead;
}

TEST(BlockOrder, IsAPermutation) {
  for (const Design& design : AllDesigns()) {
    const std::vector<std::string> arms = NamesOf(design);
    for (int block = 0; block < 5; ++block) {
      std::vector<int> order = BlockOrder(7, block, arms);
      std::sort(order.begin(), order.end());
      std::vector<int> expected(arms.size());
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(order, expected) << design.name;
    }
  }
  EXPECT_TRUE(BlockOrder(7, 0, {}).empty());
}

TEST(BlockOrder, PutsEveryPairOfArmsInBothOrdersEquallyOftenToWithinOne) {
  for (const Design& design : AllDesigns()) {
    const std::vector<std::string> arms = NamesOf(design);
    for (const int blocks : {1, 2, 16, 23, 24}) {
      for (const uint64_t seed : {1u, 2u, 99u}) {
        const std::vector<std::vector<int>> lead = Lead(arms, blocks, seed);
        for (size_t a = 0; a < arms.size(); ++a) {
          for (size_t b = 0; b < arms.size(); ++b) {
            if (a == b) continue;
            EXPECT_EQ(std::abs(lead[a][b]), blocks % 2) << arms[a] << ", " << arms[b];
          }
        }
      }
    }
  }
}

TEST(BlockOrder, HasEveryArmInTheMiddleOfAPairOfBlocksOnAverage) {
  const std::vector<std::string> arms = NamesOf(LadderDesign());
  std::vector<int> places(arms.size());
  for (const int block : {6, 7}) {
    const std::vector<int> order = BlockOrder(3, block, arms);
    for (size_t i = 0; i < order.size(); ++i) {
      places[static_cast<size_t>(order[i])] += static_cast<int>(i);
    }
  }
  for (const int sum : places) EXPECT_EQ(sum, static_cast<int>(arms.size()) - 1);
}

TEST(BlockOrder, KeepsTheOrderOfTheOthersWhenAnArmDropsOut) {
  const std::vector<std::string> all = {"a", "b", "c", "d", "e", "f"};
  const std::vector<std::string> fewer = {"a", "b", "d", "e", "f"};
  for (int block = 0; block < 20; ++block) {
    std::vector<std::string> with;
    for (const int arm : BlockOrder(5, block, all)) {
      if (all[static_cast<size_t>(arm)] != "c") with.push_back(all[static_cast<size_t>(arm)]);
    }
    std::vector<std::string> without;
    for (const int arm : BlockOrder(5, block, fewer)) {
      without.push_back(fewer[static_cast<size_t>(arm)]);
    }
    EXPECT_EQ(with, without) << block;
  }
}

// Over pairs of blocks; names that are numbered as a calibration's are.
TEST(BlockOrder, DrawsEachOrderEquallyOften) {
  constexpr int kPairs = 6000;
  const std::vector<std::string> arms = {"null:0", "null:1", "null:2"};
  std::map<std::vector<int>, int> counts;
  for (int pair = 0; pair < kPairs; ++pair) ++counts[BlockOrder(11, 2 * pair, arms)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, kPairs / 6, 5 * std::sqrt(kPairs * (1 / 6.0) * (5 / 6.0)));
  }
}

TEST(BlockOrder, DiffersBetweenSeedsAndBetweenPairsOfBlocks) {
  const std::vector<std::string> arms = NamesOf(LadderDesign());
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int block = 0; block < 20; ++block) orders.insert(BlockOrder(seed, block, arms));
  }
  EXPECT_EQ(orders.size(), 200u);
}

}  // namespace
}  // namespace warpledger::ablations
