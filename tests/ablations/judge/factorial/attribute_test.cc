// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/factorial/attribute.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

namespace warpledger::ablations {
namespace {

using analysis::Timing;
using ::testing::HasSubstr;

// A factorial of two toggles, which make the kernel 1.5 and 1.2 times as fast.
class AttributionTest : public ::testing::Test {
 protected:
  AttributionTest() {
    for (const char* name : {"cell:none", "cell:a", "cell:b", "cell:a+b"}) {
      arms_.emplace_back().name = name;
    }
    for (uint32_t mask = 0; mask < 4; ++mask) {
      const double us = 100 / ((mask & 1u) ? 1.5 : 1) / ((mask & 2u) ? 1.2 : 1);
      std::vector<Timing>& timings = timings_.emplace_back();
      for (int block = 0; block < 12; ++block) {
        timings.push_back(
            {.process = block / 4, .block = block % 4, .us = us * (1 + 0.001 * block)});
      }
    }
  }

  summary::Summary Attribute() const {
    Factorial factorial = {
        .toggles = {"a", "b"}, .arms = {}, .lattice = *analysis::Lattice::Create(2, {0, 1, 2, 3})};
    std::vector<CellData> cells;
    for (size_t i = 0; i < arms_.size(); ++i) {
      factorial.arms.push_back(&arms_[i]);
      cells.push_back({.timings = timings_[i], .why_unusable = why_unusable_[i]});
    }
    summary::Summary out;
    AddAttribution(factorial, "factorial", "small", cells,
                   {.confidence = 0.95, .bootstrap = {.resamples = 200}}, &out);
    return out;
  }

  // Neither time nor result.
  void Crash(size_t cell) {
    timings_[cell].clear();
    why_unusable_[cell] = "crash: it ended with signal 11";
  }

  std::vector<Arm> arms_;
  std::vector<std::vector<Timing>> timings_;
  std::vector<std::string> why_unusable_ = {"", "", "", ""};
};

TEST_F(AttributionTest, FindsWhatEachToggleBrings) {
  const summary::Summary out = Attribute();
  EXPECT_NEAR(*out.attribution[0].main_effect.value, 1.5, 1e-4);
  EXPECT_NEAR(*out.attribution[1].main_effect.value, 1.2, 1e-4);
  EXPECT_EQ(out.attribution[0].reason, "");
}

TEST_F(AttributionTest, ACellThatCrashedTakesItsOwnDifferencesAlone) {
  Crash(3);
  const summary::Summary out = Attribute();
  EXPECT_NEAR(out.attribution[0].main_effect.value.value_or(0), 1.5, 1e-4);
  EXPECT_NEAR(out.attribution[1].first.value.value_or(0), 1.2, 1e-4);
  EXPECT_EQ(out.attribution[0].n_pairs, 1);
  EXPECT_FALSE(out.attribution[0].last.value.has_value());
  EXPECT_FALSE(out.attribution[0].shapley_log.has_value());
  EXPECT_EQ(out.attribution[0].reason, "cell:a+b: crash: it ended with signal 11");
  EXPECT_EQ(out.interactions[0].reason, "cell:a+b: crash: it ended with signal 11");
}

TEST_F(AttributionTest, TheCellWithoutTogglesMayCrashToo) {
  Crash(0);
  const summary::Summary out = Attribute();
  EXPECT_NEAR(out.attribution[0].main_effect.value.value_or(0), 1.5, 1e-4);
  EXPECT_EQ(out.attribution[0].n_pairs, 1);
}

TEST_F(AttributionTest, ACellWithoutSamplesIsNamed) {
  timings_[2].clear();
  const summary::Summary out = Attribute();
  EXPECT_NEAR(out.attribution[0].main_effect.value.value_or(0), 1.5, 1e-4);
  EXPECT_EQ(out.attribution[0].reason, "cell:b: it has no samples");
}

TEST_F(AttributionTest, NoBlockOfEveryCellGivesNoFigure) {
  for (Timing& timing : timings_[1]) timing.process += 3;
  Crash(2);
  const summary::Summary out = Attribute();
  EXPECT_FALSE(out.attribution[0].main_effect.value.has_value());
  EXPECT_THAT(out.attribution[0].reason, HasSubstr("no block timed every usable cell"));
  EXPECT_THAT(out.attribution[0].reason, HasSubstr("cell:b: crash"));
}

}  // namespace
}  // namespace warpledger::ablations
