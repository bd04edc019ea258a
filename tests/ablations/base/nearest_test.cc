// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/nearest.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kShapes = {"small",     "tiny_multi",       "medium", "mission_a",
                                          "mission_b", "mission_b_causal", "long"};

TEST(NearestNames, PutsTheFewestEditsFirst) {
  EXPECT_THAT(NearestNames("misson_b", kShapes), ElementsAre("mission_b", "mission_a"));
}

TEST(NearestNames, KeepsTheListsOrderAmongEquals) {
  EXPECT_THAT(NearestNames("mission_c", kShapes), ElementsAre("mission_a", "mission_b"));
}

TEST(NearestNames, CountsASwapOfNeighboursAsOneEdit) {
  EXPECT_THAT(NearestNames("logn", kShapes), ElementsAre("long"));
  EXPECT_THAT(NearestNames("ab", {"ba"}), ElementsAre("ba"));
}

TEST(NearestNames, IgnoresCase) {
  EXPECT_THAT(NearestNames("MEDIUM", kShapes), ElementsAre("medium"));
  EXPECT_THAT(NearestNames("medium", {"MEDIUM"}), ElementsAre("MEDIUM"));
}

TEST(NearestNames, FindsNamesThatHoldTheWord) {
  EXPECT_THAT(NearestNames("causal", kShapes), ElementsAre("mission_b_causal"));
  EXPECT_THAT(NearestNames("mission", kShapes),
              ElementsAre("mission_a", "mission_b", "mission_b_causal"));
}

TEST(NearestNames, FindsNamesThatTheWordHolds) {
  EXPECT_THAT(NearestNames("the_medium_shape", kShapes), ElementsAre("medium"));
}

TEST(NearestNames, SuggestsNothingForSomethingElse) {
  EXPECT_THAT(NearestNames("zebra", kShapes), IsEmpty());
  EXPECT_THAT(NearestNames("", kShapes), IsEmpty());
  EXPECT_THAT(NearestNames("small", {}), IsEmpty());
}

TEST(NearestNames, DoesNotMatchEveryNameThatHoldsOneLetter) {
  EXPECT_THAT(NearestNames("m", kShapes), IsEmpty());
  EXPECT_THAT(NearestNames("x", {"a", "b"}), IsEmpty());
}

TEST(NearestNames, StopsAtTheNumberAskedFor) {
  EXPECT_THAT(NearestNames("mission", kShapes, 1), ElementsAre("mission_a"));
  EXPECT_THAT(NearestNames("mission", kShapes, 0), IsEmpty());
}

TEST(NearestNames, NamesEachNameOnce) {
  EXPECT_THAT(NearestNames("smal", {"small", "small"}), ElementsAre("small"));
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
