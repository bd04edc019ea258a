// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/subject.h"

#include <gmock/gmock.h>

#include <string>

#include "kernels/sdpa/registry/registry.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

ShapeInfo Problem(const char* name) { return SdpaSubject().ParseProblems(name)->front(); }

TEST(SdpaSubject, ProblemsSurviveTheirWayThroughARecord) {
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    const sdpa::Problem problem = ProblemOf(ShapeInfoOf(shape)).value();
    EXPECT_TRUE(problem == shape.problem) << std::string(shape.name);
  }
}

// Records from before there was a choice have neither.
TEST(SdpaSubject, AProblemSaysItsDtypeAndEmbeddingOnlyWhereTheyAreNotTheUsualOnes) {
  sdpa::NamedShape shape = sdpa::kShapes[0];
  EXPECT_FALSE(ShapeInfoOf(shape).fields.contains("dtype"));
  EXPECT_FALSE(ShapeInfoOf(shape).fields.contains("embed_dim"));
  shape.problem.dtype = sdpa::Dtype::kBf16;
  shape.problem.embed_dim = 512;
  const ShapeInfo info = ShapeInfoOf(shape);
  EXPECT_EQ(info.fields["dtype"], "bf16");
  EXPECT_TRUE(*ProblemOf(info) == shape.problem);
}

TEST(SdpaSubject, RefusesProblemsThatAreNone) {
  const auto why = [](const char* field, const nlohmann::ordered_json& value) {
    ShapeInfo info = Problem("small");
    info.fields[field] = value;
    return Message(SdpaSubject().CheckProblem(info));
  };
  EXPECT_THAT(why("dtype", "fp8"), HasSubstr("dtype: expected fp16 or bf16"));
  EXPECT_THAT(why("embed_dim", 0), HasSubstr("embed_dim: expected a number from 1"));
  EXPECT_THAT(why("causal", 1), HasSubstr("causal: expected"));
  for (const int64_t size : {int64_t{0}, int64_t{-5}, int64_t{2147483647}}) {
    EXPECT_THAT(why("seq_q", size), HasSubstr("seq_q: expected a number from 1"));
  }
  ShapeInfo huge = Problem("small");
  for (const char* name : {"batch", "heads_q", "seq_q", "seq_kv"}) huge.fields[name] = 1 << 20;
  EXPECT_THAT(Message(SdpaSubject().CheckProblem(huge)), HasSubstr("fits into a GPU"));
  huge.fields.erase("heads_kv");
  EXPECT_THAT(Message(SdpaSubject().CheckProblem(huge)), HasSubstr("heads_kv: missing"));
}

TEST(SdpaSubject, ClaimsAreTheRowsOfTheRegistryInItsOrder) {
  ASSERT_EQ(SdpaSubject().claims().size(), std::size(sdpa::kToggles));
  for (size_t i = 0; i < std::size(sdpa::kToggles); ++i) {
    EXPECT_EQ(SdpaSubject().claims()[i].id, sdpa::kToggles[i].id);
  }
  const Claim* claim = SdpaSubject().FindClaim("wmma_qk");
  ASSERT_NE(claim, nullptr);
  EXPECT_TRUE(SdpaSubject().IsOn("kv_tiling+wmma_qk=2", *claim));
  EXPECT_FALSE(SdpaSubject().IsOn("kv_tiling+wmma_qk_of_another", *claim));
  EXPECT_EQ(SdpaSubject().FindClaim("unheard_of"), nullptr);
}

TEST(SdpaSubject, NamesTheCodeOfAVariantAsTheBuildDoes) {
  EXPECT_THAT(SdpaSubject().CodeNames("wgmma+stream_launch", Problem("mission_b_causal")),
              ElementsAre("wgmma@causal", "wgmma"));
}

}  // namespace
}  // namespace warpledger::ablations
