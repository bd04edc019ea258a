// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/opcodes.h"

#include <gmock/gmock.h>

namespace warpledger::analysis {
namespace {

using ::testing::ElementsAre;

const Opcodes kScalar = {{"FFMA", 64}, {"LDG.E", 8}, {"LDG.E.128", 2}, {"MUFU.EX2", 4}};
const Opcodes kTensor = {{"FFMA", 32}, {"HMMA.16816.F32", 32}, {"LDG.E.128", 4}, {"MUFU.EX2", 4}};

std::vector<std::string> Lines(const std::vector<OpcodeChange>& changes) {
  std::vector<std::string> lines;
  for (const OpcodeChange& c : changes) {
    lines.push_back(c.opcode + " " + std::to_string(c.before) + " " + std::to_string(c.after));
  }
  return lines;
}

TEST(OpcodesTest, CountsAllAndThoseThatMatch) {
  EXPECT_EQ(CountAll(kScalar), 78);
  EXPECT_EQ(CountAll({}), 0);
  EXPECT_EQ(CountMatching(kScalar, "LDG"), 10);
  EXPECT_EQ(CountMatching(kScalar, "LDG.*\\.128"), 2);
  EXPECT_EQ(CountMatching(kScalar, "^HMMA"), 0);
}

TEST(OpcodesTest, ChangesAreByMnemonicLargestFirstAndEqualOnesByTheAlphabet) {
  EXPECT_THAT(Lines(LargestChanges(kScalar, kTensor, 9)),
              ElementsAre("FFMA 64 32", "HMMA 0 32", "LDG 10 4"));
  EXPECT_THAT(Lines(LargestChanges(kTensor, kScalar, 1)), ElementsAre("FFMA 32 64"));
}

TEST(OpcodesTest, TheSameCodeHasNoChange) {
  EXPECT_TRUE(LargestChanges(kScalar, kScalar, 9).empty());
}

}  // namespace
}  // namespace warpledger::analysis
