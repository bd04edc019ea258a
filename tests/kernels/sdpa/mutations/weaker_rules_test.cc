// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/sdpa/mutations/weaker_rules.h"

#include <string>

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

std::vector<std::string> Passing(const std::vector<double>& reference,
                                 const std::vector<float>& out) {
  std::vector<std::string> names;
  for (const WeakerRule& rule : kWeakerRules) {
    if (Passes(rule, reference, out)) names.emplace_back(rule.name);
  }
  return names;
}

TEST(WeakerRules, PassWhatIsNearEnoughByTheirOwnMeasure) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Passing({1, 0}, {1, 0}),
            (Names{"absolute_0.06", "relative_1e-3", "allclose", "assert_close_fp16"}));
  EXPECT_EQ(Passing({1, 0.001}, {1, 0.0015f}), (Names{"absolute_0.06", "relative_1e-3"}));
  EXPECT_EQ(Passing({1, 0}, {1.0005f, 0}),
            (Names{"absolute_0.06", "relative_1e-3", "assert_close_fp16"}));
  EXPECT_EQ(Passing({1, 0}, {1.05f, 0}), Names{"absolute_0.06"});
  EXPECT_EQ(Passing({1, 0}, {1.07f, 0}), Names{});
}

TEST(WeakerRules, FailNanAndMissingElements) {
  EXPECT_EQ(Passing({0}, {NAN}), std::vector<std::string>{});
  EXPECT_EQ(Passing({0, 0}, {0}), std::vector<std::string>{});
}

}  // namespace
}  // namespace warpledger::sdpa
