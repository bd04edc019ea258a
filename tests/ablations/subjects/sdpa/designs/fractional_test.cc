// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/designs/fractional.h"

#include <gmock/gmock.h>

#include <set>

#include "ablations/judge/factorial/attribute.h"
#include "ablations/stats/factorial/main_effects.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/sdpa/subject.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

class FractionTest : public ::testing::TestWithParam<int> {};

TEST_P(FractionTest, IsRegularBalancedAndOfResolutionFourAtLeast) {
  const size_t k = static_cast<size_t>(GetParam());
  const std::vector<FractionColumn> columns = FractionColumns(k);
  ASSERT_EQ(columns.size(), k);
  const int q = BasicColumns(k);
  EXPECT_GE(1 << (q - 1), GetParam());
  std::vector<uint32_t> cells;
  for (unsigned run = 0; run < 1u << q; ++run) cells.push_back(FractionCell(columns, run));
  EXPECT_EQ(cells[0], 0u) << "everything off belongs to it";
  EXPECT_EQ(std::set<uint32_t>(cells.begin(), cells.end()).size(), cells.size());
  for (size_t i = 0; i < k; ++i) {
    const auto on = std::count_if(cells.begin(), cells.end(),
                                  [&](uint32_t cell) { return (cell >> i & 1u) != 0; });
    EXPECT_EQ(2 * on, static_cast<int64_t>(cells.size())) << "column " << i;
  }
  const auto effects = analysis::MainEffects::Create(GetParam(), cells).value();
  for (int i = 0; i < GetParam(); ++i) EXPECT_TRUE(effects.Aliases(i).empty()) << i;
}

INSTANTIATE_TEST_SUITE_P(Factors, FractionTest, ::testing::Range(4, 17));

TEST(FractionalDesignTest, HoldsLegalCellsAloneAndDeclaresTheOthers) {
  std::string all = "fractional:";
  int named = 0;
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    if (named++ > 0) all += ",";
    all += row->id;
  }
  const auto design = FindDesign(all).value();
  int cells = 0;
  std::set<std::string> configs;
  for (const DesignArm& arm : design.arms) {
    EXPECT_FALSE(sdpa::WhyInvalid(arm.config)) << arm.name;
    if (arm.role != "cell") continue;
    ++cells;
    EXPECT_TRUE(configs.insert(sdpa::ConfigName(arm.config)).second) << arm.name;
  }
  EXPECT_EQ(cells + static_cast<int>(design.infeasible.size()),
            1 << BasicColumns(static_cast<size_t>(named)));
  for (const InfeasibleCell& cell : design.infeasible) {
    EXPECT_FALSE(cell.toggle.empty()) << cell.name;
  }
  EXPECT_EQ(design.arms.front().name, "cell:none");
  EXPECT_THAT(design.label, HasSubstr("of resolution 4"));
  EXPECT_EQ(design.arms[design.arms.size() - 2].role, "aa");
}

TEST(FractionalDesignTest, SaysWhatIsAliasedWhereCellsAreMissing) {
  const auto clear =
      FindDesign("fractional:warp_shuffle,vector_loads,wmma_qk,wmma_pv@kv_tiling").value();
  std::vector<Arm> arms;
  for (const DesignArm& arm : clear.arms) arms.push_back({arm.name, "", arm.role, "", ""});
  const Fraction fraction = FindFraction(SdpaSubject(), arms);
  EXPECT_EQ(fraction.toggles.size(), 4u);
  EXPECT_EQ(fraction.cells.size() + clear.infeasible.size(), 8u);
  const auto aliases = AliasWarnings(fraction).value();
  EXPECT_EQ(aliases.empty(), clear.infeasible.empty());
  // One cell less, and nothing is regular any more.
  Fraction less = fraction;
  less.cells.pop_back();
  EXPECT_FALSE(AliasWarnings(less)->empty());
  // Five terms need five cells.
  less.cells.resize(4);
  less.arms.resize(4);
  EXPECT_FALSE(AliasWarnings(less).ok());
}

TEST(FractionalDesignTest, TooFewOrTooManyTogglesAreRefused) {
  EXPECT_THAT(std::string(FindDesign("fractional:kv_tiling,wmma_pv").status().message()),
              HasSubstr("name 4 to 16"));
}

TEST(FractionalEffectsTest, PlantedEffectsComeBackAndAWrongCellIsLeftOut) {
  const auto design =
      FindDesign("fractional:warp_shuffle,vector_loads,wmma_qk,wmma_pv@kv_tiling").value();
  std::vector<Arm> arms;
  for (const DesignArm& arm : design.arms) arms.push_back({arm.name, "", arm.role, "", ""});
  const Fraction fraction = FindFraction(SdpaSubject(), arms);
  const double factor[] = {1.5, 1.25, 0.9, 2};  // time off over time on
  std::vector<std::vector<analysis::Timing>> timings(fraction.cells.size());
  for (size_t cell = 0; cell < fraction.cells.size(); ++cell) {
    double us = 100;
    for (size_t i = 0; i < 4; ++i) us /= fraction.cells[cell] >> i & 1u ? factor[i] : 1;
    for (int process = 0; process < 3; ++process) {
      for (int block = 0; block < 4; ++block) {
        timings[cell].push_back(
            {.process = process, .block = block, .us = us * (1 + 0.01 * block)});
      }
    }
  }
  std::vector<CellData> cells;
  for (const auto& list : timings) cells.push_back({.timings = list, .why_unusable = ""});
  std::vector<summary::MainEffect> effects;
  AddMainEffects(fraction, "mission_b", cells,
                 {.confidence = 0.95, .bootstrap = {.resamples = 200}}, &effects);
  ASSERT_EQ(effects.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(*effects[i].ratio.value, factor[i], 1e-5);
    EXPECT_EQ(effects[i].reason, "");
  }
  cells.back().why_unusable = "it is wrong";
  std::vector<summary::MainEffect> partial;
  AddMainEffects(fraction, "mission_b", cells,
                 {.confidence = 0.95, .bootstrap = {.resamples = 200}}, &partial);
  EXPECT_THAT(partial[0].reason, HasSubstr("it is wrong"));
  EXPECT_FALSE(partial[0].aliases.empty());
}

TEST(SweepDesignTest, TimesEachLevelAgainstTheFirst) {
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    const auto design = FindDesign(std::string("sweep:").append(row->id)).value();
    size_t steps = 0;
    for (const DesignArm& arm : design.arms) {
      EXPECT_FALSE(sdpa::WhyInvalid(arm.config)) << arm.name;
      if (arm.role != "step") continue;
      ++steps;
      EXPECT_EQ(arm.base, design.arms.front().name);
      EXPECT_EQ(arm.toggle, row->id);
    }
    EXPECT_EQ(steps, row->levels.count - 1);
  }
  EXPECT_THAT(std::string(FindDesign("sweep:kv_tiling,wmma_pv").status().message()),
              HasSubstr("name one"));
  EXPECT_FALSE(FindDesign("sweep:nonesuch").ok());
}

}  // namespace
}  // namespace warpledger::ablations
