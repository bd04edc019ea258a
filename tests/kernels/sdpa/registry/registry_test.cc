// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/registry/registry.h"

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/claims.h"
#include "kernels/sdpa/registry/techniques.h"

namespace warpledger::sdpa {
namespace {

bool IsKnownShape(std::string_view name) {
  return std::any_of(std::begin(kShapes), std::end(kShapes),
                     [&](const NamedShape& shape) { return shape.name == name; });
}

TEST(Registry, HasUniqueSnakeCaseIdsThatDoNotClashWithTheBaseline) {
  const std::regex snake_case("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  std::set<std::string> ids = {std::string(kBaseline.id)};
  std::set<std::string> labels = {std::string(kBaseline.label)};
  for (const ToggleRow& row : kToggles) {
    EXPECT_TRUE(std::regex_match(std::string(row.id), snake_case)) << row.id;
    EXPECT_TRUE(ids.insert(std::string(row.id)).second) << row.id << " stands twice";
    EXPECT_FALSE(row.label.empty()) << row.id;
    EXPECT_TRUE(labels.insert(std::string(row.label)).second) << row.label << " stands twice";
  }
}

TEST(Registry, TiesEachIdToItsOwnField) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_EQ(ToggleId(row.field), row.id);
    Config config;
    config.*row.field = row.levels.values[1];
    for (const ToggleRow& other : kToggles) {
      EXPECT_EQ(config.*other.field != 0, other.id == row.id) << row.id << ", " << other.id;
    }
  }
}

TEST(Registry, HasOffAsTheFirstLevelAndAscendingDistinctLevels) {
  for (const ToggleRow& row : kToggles) {
    ASSERT_GE(row.levels.count, 2u) << row.id << " can't be switched on";
    ASSERT_LE(row.levels.count, kMaxLevels) << row.id;
    EXPECT_EQ(row.levels.values[0], 0) << row.id;
    for (size_t i = 1; i < row.levels.count; ++i) {
      EXPECT_LT(row.levels.values[i - 1], row.levels.values[i]) << row.id;
    }
  }
}

TEST(Registry, NamesEachLevelInAWordOfItsOwn) {
  const std::regex snake_case("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  for (const ToggleRow& row : kToggles) {
    std::set<std::string> names;
    for (size_t i = 0; i < row.levels.count; ++i) {
      const std::string name(row.levels.names[i]);
      EXPECT_TRUE(std::regex_match(name, snake_case)) << row.id << ": " << name;
      EXPECT_TRUE(names.insert(name).second) << row.id << ": " << name << " stands twice";
      EXPECT_EQ(row.levels.NameOf(row.levels.values[i]), name);
    }
  }
}

TEST(Registry, DeclaresAComparisonForEachLevelOfATogglesSeveral) {
  for (const LevelClaim& claim : kLevelClaims) {
    EXPECT_LE(claim.low, claim.high) << claim.level;
    const bool known = std::ranges::any_of(kToggles, [&](const ToggleRow& row) {
      const auto& names = row.levels.names;
      return row.field == claim.toggle && std::ranges::count(names, claim.level) == 1 &&
             std::ranges::count(names, claim.over) == 1;
    });
    EXPECT_TRUE(known) << ToggleId(claim.toggle) << ": " << claim.level << " over " << claim.over;
  }
  for (const ToggleRow& row : kToggles) {
    for (size_t i = 1; row.levels.count > 2 && i < row.levels.count; ++i) {
      EXPECT_TRUE(std::ranges::any_of(kLevelClaims,
                                      [&](const LevelClaim& claim) {
                                        return claim.toggle == row.field &&
                                               claim.level == row.levels.names[i];
                                      }))
          << row.id << ": " << row.levels.names[i];
    }
  }
}

TEST(Registry, EveryClaimHasABaselineARegimeNamedLevelsAPredictionAGateEvidenceAndAFamilyOfTests) {
  const std::vector<Claim> claims = DeclaredClaims();
  std::set<std::string> ids;
  std::set<const ToggleRow*> rows;
  std::set<std::string> unforeseen;
  std::set<std::string> pair_families;
  for (const Claim& claim : claims) {
    const std::string id = ClaimId(*claim.row, claim.over, claim.level);
    EXPECT_TRUE(ids.insert(id).second) << id << " stands twice";
    rows.insert(claim.row);
    EXPECT_NE(claim.over, claim.level) << id;
    EXPECT_FALSE(claim.row->levels.NameOf(claim.over).empty()) << id;
    EXPECT_FALSE(claim.row->levels.NameOf(claim.level).empty()) << id;
    EXPECT_TRUE(std::ranges::any_of(
        kShapes, [&](const NamedShape& shape) { return shape.name == claim.problem; }))
        << id << ": no problem " << claim.problem << " says what its regime is";
    EXPECT_GT(claim.low, 0) << id;
    EXPECT_LE(claim.low, claim.high) << id;
    if (claim.foreseen == Foreseen::kFromRecord) unforeseen.insert(id);
    EXPECT_EQ(PredictsSince(claim).empty(), claim.foreseen != Foreseen::kFromRecord) << id;
    EXPECT_EQ(claim.step_family, claim.row->id) << id;
    EXPECT_EQ(claim.pair_family.empty(), claim.row->levels.count == 2) << id;
    if (!claim.pair_family.empty()) {
      EXPECT_TRUE(pair_families.insert(claim.pair_family).second) << id << " shares its family";
    }
    EXPECT_GT(claim.row->gate, 1) << id;
    EXPECT_FALSE(claim.row->prior.text.empty()) << id;
    EXPECT_TRUE(claim.row->evidence.change != EvidenceChange::kNone ||
                !claim.row->evidence.launched.empty())
        << id;
  }
  for (const ToggleRow& row : kToggles) EXPECT_EQ(rows.contains(&row), !row.control) << row.id;
  // Pages take figures from records; one in a lesson would go stale beside them.
  const std::regex figure(R"(\d\.\d|\d ?%|\d us)");
  for (const ToggleRow& row : kToggles) {
    EXPECT_FALSE(std::regex_search(std::string(row.lesson), figure))
        << row.id << ": " << row.lesson;
  }
  // A label of a level is its own among those of its toggle; the first on-level's is the row's.
  for (const LevelClaim& each : kLevelClaims) {
    const ToggleRow& row = *std::ranges::find(kToggles, each.toggle, &ToggleRow::field);
    const int level = LevelNamed(row, each.level);
    if (level == row.levels.values[1]) {
      EXPECT_EQ(LabelOf(row, level), row.label) << each.level;
    }
    if (each.label.empty()) continue;
    EXPECT_EQ(LabelOf(row, level), each.label) << each.level << " has another label before";
    for (std::size_t i = 0; i < row.levels.count; ++i) {
      if (row.levels.values[i] == level) continue;
      EXPECT_NE(LabelOf(row, row.levels.values[i]), each.label) << row.id;
    }
  }
  // Whoever adds one predicts: no record has judged it.
  EXPECT_EQ(unforeseen.size(), 21u) << testing::PrintToString(unforeseen);
}

TEST(Registry, HasEachTechniqueOnceAndTogglesForIt) {
  const std::regex how_often("\\b(always|mostly|often|sometimes|seldom|never)\\b");
  for (const TechniqueRow& technique : kTechniques) {
    EXPECT_EQ(FindTechnique(technique.id), &technique);
    EXPECT_FALSE(std::regex_search(std::string(technique.where), how_often))
        << technique.name << ": records say how often it pays";
    EXPECT_TRUE(std::ranges::any_of(kToggles, [&](const ToggleRow& row) {
      return row.technique == technique.id;
    })) << technique.name;
  }
}

// Or the ladder, which adds toggles in registry order, would have illegal steps.
TEST(Registry, NeedsOnlyTogglesThatComeEarlierAndAreNoControls) {
  std::set<std::string_view> earlier;
  for (const ToggleRow& row : kToggles) {
    for (const ToggleField need : row.needs) {
      if (need == nullptr) continue;
      EXPECT_TRUE(earlier.contains(ToggleId(need))) << row.id << " needs " << ToggleId(need);
    }
    if (!row.control) earlier.insert(row.id);
  }
}

TEST(Registry, SaysOfEachToggleWhatItClaims) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_GT(row.claim.size(), 20u) << row.id;
    EXPECT_TRUE(row.claim.ends_with('.')) << row.id << ": " << row.claim;
    EXPECT_FALSE(row.prior.text.empty()) << row.id;
  }
}

TEST(Registry, PredictsARangeAtAKnownShapeForEachToggle) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_TRUE(IsKnownShape(row.predicted.shape)) << row.id << ": " << row.predicted.shape;
    EXPECT_GT(row.predicted.low, 0) << row.id;
    EXPECT_LE(row.predicted.low, row.predicted.high) << row.id;
    EXPECT_FALSE(row.predicted.why.empty()) << row.id;
    // A factor of 10 either way would be a slip of the pen.
    EXPECT_LT(row.predicted.high, 10) << row.id;
    EXPECT_GT(row.predicted.low, 0.1) << row.id;
  }
}

TEST(Registry, AdoptsNothingWithoutAGain) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_GT(row.gate, 1.0) << row.id;
    EXPECT_LT(row.gate, 2.0) << row.id;
  }
}

TEST(Registry, DemandsEvidenceOfEachTechniqueAndNoneOfAControl) {
  for (const ToggleRow& row : kToggles) {
    if (row.control) {
      EXPECT_EQ(row.evidence.change, EvidenceChange::kNone) << row.id;
      EXPECT_TRUE(row.evidence.ptx.empty() && row.evidence.sass.empty()) << row.id;
      EXPECT_EQ(row.predicted.low, 1.0) << row.id;
      EXPECT_EQ(row.predicted.high, 1.0) << row.id;
    } else if (row.launch_side && row.code_side_with == nullptr) {
      EXPECT_FALSE(row.evidence.launched.empty()) << row.id << " is proved by nothing launched";
      EXPECT_TRUE(row.evidence.ptx.empty() && row.evidence.sass.empty()) << row.id;
    } else {
      EXPECT_NE(row.evidence.change, EvidenceChange::kNone) << row.id;
      EXPECT_FALSE(row.evidence.ptx.empty()) << row.id << " is proved by nothing in the PTX";
    }
  }
}

TEST(Registry, HasEvidenceThatIsARegularExpression) {
  for (const ToggleRow& row : kToggles) {
    for (const std::string_view pattern :
         {row.evidence.ptx, row.evidence.sass, row.evidence.launched}) {
      EXPECT_NO_THROW(std::regex{std::string(pattern)}) << row.id << ": " << pattern;
    }
  }
}

TEST(Registry, HasAControlSoThatFalseVerdictsShow) {
  EXPECT_TRUE(std::any_of(std::begin(kToggles), std::end(kToggles),
                          [](const ToggleRow& row) { return row.control; }));
}

// Prior::ratio is time(before) / time(after): where the notes give both times,
// it must be their quotient.
TEST(Registry, GivesPriorRatiosThatAgreeWithThePriorTimes) {
  double before_us = kBaseline.prior.p50_us;
  int compared = 0;
  for (const ToggleRow& row : kToggles) {
    const double after_us = row.prior.p50_us;
    if (after_us > 0 && row.prior.ratio > 0) {
      EXPECT_NEAR(row.prior.ratio, before_us / after_us, 0.005 * row.prior.ratio + 0.005)
          << row.id << ": " << before_us << " us before, " << after_us << " us after";
      ++compared;
    }
    if (after_us > 0) before_us = after_us;
  }
  EXPECT_GE(compared, 3);
}

TEST(Registry, QuotesItsPriorFiguresAsItsPriorTextDoes) {
  for (const ToggleRow& row : kToggles) {
    if (row.prior.p50_us == 0) continue;
    const std::string figure = std::to_string(static_cast<int>(row.prior.p50_us)) + " us";
    EXPECT_THAT(std::string(row.prior.text), ::testing::HasSubstr(figure)) << row.id;
  }
  EXPECT_THAT(std::string(kBaseline.prior.text), ::testing::HasSubstr("2870 us"));
}

// Pages of techniques print both as sentences, and end them.
TEST(Registry, RowsSayWhatOtherFamiliesHaveInTheirPlace) {
  for (const ToggleRow& row : kToggles) {
    bool everywhere = true;
    for (const Family family : {Family::kSmem, Family::kWgmma, Family::kMma, Family::kResident}) {
      everywhere = everywhere && Includes(row.families, family);
    }
    EXPECT_EQ(row.elsewhere.empty(), everywhere || row.control) << row.id;
    EXPECT_FALSE(row.elsewhere.ends_with('.')) << row.id;
    EXPECT_FALSE(row.lesson.ends_with('.')) << row.id;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
