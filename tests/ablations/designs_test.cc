#include "ablations/designs.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

const DesignArm& Arm(const Design& design, const std::string& name) {
  for (const DesignArm& arm : design.arms) {
    if (arm.name == name) return arm;
  }
  ADD_FAILURE() << "no arm " << name;
  return design.arms.front();
}

// The toggles whose levels differ between two configurations.
std::set<std::string> Differences(const sdpa::Config& a, const sdpa::Config& b) {
  std::set<std::string> ids;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (a.*row.field != b.*row.field) ids.insert(std::string(row.id));
  }
  return ids;
}

TEST(LadderDesign, ClimbsEightStepsAndEndsInTheControls) {
  std::vector<std::string> names;
  for (const DesignArm& arm : LadderDesign().arms) names.push_back(arm.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "minimal_scalar", "ladder:kv_tiling", "ladder:tile_m32_warps4",
                "ladder:warp_shuffle", "ladder:vector_loads", "ladder:wmma_qk",
                "ladder:cp_async_stages", "ladder:wmma_pv", "control:aa", "control:null_toggle"}));
}

TEST(LadderDesign, StartsWithEverythingOff) {
  const Design design = LadderDesign();
  const DesignArm& base = design.arms.front();
  EXPECT_EQ(base.role, "base");
  EXPECT_EQ(base.config, sdpa::Config{});
  EXPECT_EQ(base.base, "");
  EXPECT_EQ(base.toggle, "");
}

TEST(LadderDesign, AddsInEachStepExactlyItsToggleToTheStepBefore) {
  const Design design = LadderDesign();
  std::set<std::string> added;
  std::string previous = design.arms.front().name;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "step") continue;
    EXPECT_EQ(arm.base, previous) << arm.name;
    EXPECT_EQ(Differences(arm.config, Arm(design, arm.base).config),
              std::set<std::string>{arm.toggle})
        << arm.name;
    EXPECT_TRUE(added.insert(arm.toggle).second) << arm.name;
    previous = arm.name;
  }
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    EXPECT_EQ(added.contains(std::string(row.id)), !row.control) << row.id;
  }
}

TEST(LadderDesign, TakesTheFirstOnLevelOfEachToggle) {
  const Design design = LadderDesign();
  EXPECT_EQ(Arm(design, "ladder:cp_async_stages").config.cp_async_stages, 2);
  EXPECT_EQ(Arm(design, "ladder:wmma_pv").config.wmma_pv, 1);
}

TEST(LadderDesign, PlantsControlsOnTheLastStep) {
  const Design design = LadderDesign();
  const DesignArm& aa = Arm(design, "control:aa");
  EXPECT_EQ(aa.role, "aa");
  EXPECT_EQ(aa.base, "ladder:wmma_pv");
  EXPECT_EQ(aa.config, Arm(design, aa.base).config);
  const DesignArm& null = Arm(design, "control:null_toggle");
  EXPECT_EQ(null.role, "null");
  EXPECT_EQ(null.toggle, "null_toggle");
  EXPECT_EQ(null.base, "ladder:wmma_pv");
  EXPECT_EQ(Differences(null.config, Arm(design, null.base).config),
            std::set<std::string>{"null_toggle"});
}

TEST(AllDesigns, HaveArmsThatAreLegalNamedOnceAndJudgedAgainstAnEarlierArm) {
  std::set<std::string> design_names;
  for (const Design& design : AllDesigns()) {
    EXPECT_TRUE(design_names.insert(design.name).second) << design.name;
    EXPECT_FALSE(design.label.empty()) << design.name;
    ASSERT_FALSE(design.arms.empty()) << design.name;
    std::set<std::string> earlier;
    for (const DesignArm& arm : design.arms) {
      EXPECT_FALSE(sdpa::WhyInvalid(arm.config)) << arm.name;
      EXPECT_EQ(arm.role == "base", arm.base.empty()) << arm.name;
      if (!arm.base.empty()) {
        EXPECT_TRUE(earlier.contains(arm.base)) << arm.name << " against " << arm.base;
      }
      EXPECT_TRUE(earlier.insert(arm.name).second) << arm.name;
    }
  }
}

// An arm's name must not read as another configuration on the command line.
TEST(AllDesigns, GiveANameToOneConfigurationOnly) {
  std::map<std::string, sdpa::Config> named;
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      const auto [at, is_new] = named.emplace(arm.name, arm.config);
      EXPECT_EQ(at->second, arm.config) << arm.name;
    }
  }
}

}  // namespace
}  // namespace warpledger::ablations
