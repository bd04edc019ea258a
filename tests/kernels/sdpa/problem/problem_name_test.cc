// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/problem_name.h"

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/shapes.h"

namespace warpledger::sdpa {
namespace {

TEST(ProblemName, SaysTheSizesAndGivesThemBack) {
  EXPECT_EQ(ProblemName({2, 8, 8, 256, 256, 64, false}), "b2_h8_s256_d64");
  EXPECT_EQ(ProblemName({1, 32, 8, 1, 8192, 128, true, Dtype::kBf16}),
            "b1_h32x8_s1x8192_d128_causal_bf16");
  for (const NamedShape& shape : kShapes) {
    if (shape.problem.embed_dim > 0) continue;
    EXPECT_EQ(ProblemFromName(ProblemName(shape.problem)), shape.problem) << shape.name;
  }
}

TEST(ShownName, IsOfTheSizesWhereRecordsHaveAnotherName) {
  EXPECT_EQ(ShownName("mission_a"), "b2_h8_s256_d64");
  EXPECT_EQ(ShownName("long"), "long");
  EXPECT_EQ(ShownName("a_problem_of_yours"), "a_problem_of_yours");
  for (const NamedShape& shape : kShapes) {
    if (shape.shown.empty()) continue;
    EXPECT_EQ(shape.shown, ProblemName(shape.problem));
  }
}

TEST(ProblemFromName, TakesOneSpellingAlone) {
  for (const char* name :
       {"", "b2", "b2_h8_s256", "b2_h8_s256_d", "b0_h8_s256_d64", "b02_h8_s256_d64",
        "b2_h8x8_s256_d64", "b2_h8_s256x256_d64", "b2_h8_s256_d64_", "b2_h8_s256_d64_fp16",
        "b2_h8_s256_d64_bf16_causal", "b2_h8_s-1_d64", "b2_h8_s256_d64 ", "xb2_h8_s256_d64",
        "b1048577_h8_s256_d64", "b99999999999_h8_s256_d64"}) {
    EXPECT_EQ(ProblemFromName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
