// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/limits.h"

#include "gtest/gtest.h"

namespace warpledger::harness {
namespace {

TEST(FindLimit, DiffersByArchitecture) {
  const Limit fma = {.resource = Resource::kFp32Fma};
  EXPECT_EQ(FindLimit(fma, 80)->value, 64);
  EXPECT_EQ(FindLimit(fma, 89)->value, 128);
  EXPECT_EQ(FindLimit(fma, 90)->value, 128);
}

TEST(FindLimit, NamesItsSource) {
  for (const Resource resource :
       {Resource::kFp32Fma, Resource::kFp16Fma, Resource::kInt32Add, Resource::kMufu,
        Resource::kShuffle, Resource::kWarpReduce, Resource::kIssue, Resource::kSharedBytes,
        Resource::kTensorFp16Flop, Resource::kTensorFp8Flop}) {
    const auto limit = FindLimit({.resource = resource}, 90);
    ASSERT_TRUE(limit.has_value()) << static_cast<int>(resource);
    EXPECT_GT(limit->value, 0);
    EXPECT_FALSE(limit->source.empty());
  }
}

TEST(FindLimit, IsInTheUnitOfTheCase) {
  // A row is five shuffles of 32 lanes.
  EXPECT_DOUBLE_EQ(FindLimit({.resource = Resource::kShuffle, .scale = 1.0 / 160}, 90)->value, 0.2);
}

TEST(FindLimit, IsEmptyRatherThanGuessed) {
  EXPECT_FALSE(FindLimit({}, 90).has_value());
  EXPECT_FALSE(FindLimit({.resource = Resource::kMufu}, 100).has_value());
  EXPECT_FALSE(FindLimit({.resource = Resource::kTensorFp8Flop}, 80).has_value());
  EXPECT_FALSE(FindLimit({.resource = Resource::kDramBytesPerSecond}, 90, 0).has_value());
}

TEST(FindLimit, TakesDramInGigabytesPerSecond) {
  EXPECT_DOUBLE_EQ(FindLimit({.resource = Resource::kDramBytesPerSecond}, 90, 4.8e12)->value, 4800);
}

TEST(FindLimit, PrefersTheLimitOfTheCase) {
  const auto limit =
      FindLimit({.resource = Resource::kMufu, .own = 21.3, .own_source = "arithmetic"}, 90);
  EXPECT_EQ(limit->value, 21.3);
  EXPECT_EQ(limit->source, "arithmetic");
}

}  // namespace
}  // namespace warpledger::harness
