// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace warpledger::fuzz {
namespace {

constexpr char kLines[] = "{\"seq\":0,\"us\":1.5}\n{\"seq\":1,\"us\":2.5}\n{\"seq\":2,\"us\":3}\n";
constexpr char kFile[] = "{\"arms\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"seed\": 7}\n";

TEST(Mutate, OneSeedNamesOneDamage) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix64 first(seed);
    SplitMix64 second(seed);
    EXPECT_EQ(Mutate(kFile, kLines, first), Mutate(kFile, kLines, second));
  }
}

TEST(Mutate, SeedsDamageInManyWays) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SplitMix64 random(seed);
    seen.insert(Mutate(kFile, kLines, random));
  }
  EXPECT_GT(seen.size(), 300u);
}

TEST(MutateJson, DamagesValuesAndLeavesJson) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    const std::string damaged = MutateJson(kFile, random);
    EXPECT_TRUE(nlohmann::json::accept(damaged)) << damaged;
    changed += nlohmann::json::parse(damaged) != nlohmann::json::parse(kFile);
  }
  EXPECT_GT(changed, 200);
}

TEST(MutateJson, ReachesInsideOneLineOfALineFile) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    const std::string damaged = MutateJson(kLines, random);
    ASSERT_EQ(damaged.back(), '\n');
    seen.insert(damaged);
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST(MutateLines, TakesLinesFromTheDonor) {
  bool taken = false;
  for (uint64_t seed = 0; seed < 300 && !taken; ++seed) {
    SplitMix64 random(seed);
    taken = MutateLines(kLines, "donor\n", random).find("donor") != std::string::npos;
  }
  EXPECT_TRUE(taken);
}

TEST(Mutate, EmptyTextIsNoTrouble) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    Mutate("", "", random);
  }
}

}  // namespace
}  // namespace warpledger::fuzz
