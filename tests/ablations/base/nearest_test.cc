// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/nearest.h"

#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kShapes = {"small",     "tiny_multi",       "medium", "mission_a",
                                          "mission_b", "mission_b_causal", "long"};

TEST(NearestNames, FindsWhatWasMeant) {
  using Names = std::vector<std::string>;
  const struct {
    const char* why;
    const char* word;
    Names names;
    Names nearest;
  } kCases[] = {
      {"the fewest edits first", "misson_b", kShapes, {"mission_b", "mission_a"}},
      {"the list's order among equals", "mission_c", kShapes, {"mission_a", "mission_b"}},
      {"a swap of neighbours is one edit", "logn", kShapes, {"long"}},
      {"a swap of neighbours is one edit", "ab", {"ba"}, {"ba"}},
      {"case is ignored", "MEDIUM", kShapes, {"medium"}},
      {"case is ignored", "medium", {"MEDIUM"}, {"MEDIUM"}},
      {"names that hold the word", "causal", kShapes, {"mission_b_causal"}},
      {"names that hold the word",
       "mission",
       kShapes,
       {"mission_a", "mission_b", "mission_b_causal"}},
      {"names that the word holds", "the_medium_shape", kShapes, {"medium"}},
      {"nothing for something else", "zebra", kShapes, {}},
      {"nothing for nothing", "", kShapes, {}},
      {"nothing of nothing", "small", {}, {}},
      {"one letter is in too many names", "m", kShapes, {}},
      {"one letter is in too many names", "x", {"a", "b"}, {}},
      {"each name once", "smal", {"small", "small"}, {"small"}},
  };
  for (const auto& [why, word, names, nearest] : kCases) {
    EXPECT_EQ(NearestNames(word, names), nearest) << why << ": " << word;
  }
}

TEST(NearestNames, StopsAtTheNumberAskedFor) {
  EXPECT_THAT(NearestNames("mission", kShapes, 1), ElementsAre("mission_a"));
  EXPECT_THAT(NearestNames("mission", kShapes, 0), IsEmpty());
}

TEST(UnknownName, SaysWhatWasMeantAndWhereAllNamesAre) {
  const absl::Status status = UnknownName("shape", "misson_b", kShapes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unknown shape 'misson_b'; did you mean 'mission_b', 'mission_a'? "
            "`warpledger list shapes` shows all");
}

TEST(UnknownName, LeavesOutTheQuestionWhenNothingIsNear) {
  EXPECT_EQ(UnknownName("design", "zebra", kShapes).message(),
            "unknown design 'zebra'; `warpledger list designs` shows all");
}

TEST(UnknownName, EscapesWhatATerminalWouldInterpret) {
  EXPECT_EQ(UnknownName("shape", "\x1b[2J", {}).message(),
            "unknown shape '\\033[2J'; `warpledger list shapes` shows all");
}

}  // namespace
}  // namespace warpledger::ablations
