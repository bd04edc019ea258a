// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/designs/designs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "tests/ablations/subjects/sdpa/designs/design_lookup.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;

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

TEST(LadderDesign, StandsEachStepOnTheStepBefore) {
  const Design design = LadderDesign();
  std::set<std::string> added;
  std::string previous = design.arms.front().name;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "step") continue;
    EXPECT_EQ(arm.base, previous) << arm.name;
    EXPECT_TRUE(added.insert(arm.toggle).second) << arm.name;
    previous = arm.name;
  }
  std::set<std::string> ladder;
  for (const sdpa::ToggleRow* row : LadderToggles()) ladder.insert(std::string(row->id));
  EXPECT_EQ(added, ladder);
}

TEST(LadderToggles, AreAsManyTechniquesAsGoTogether) {
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    EXPECT_FALSE(row->control) << row->id;
    config.*row->field = FirstOnLevel(*row);
    EXPECT_FALSE(sdpa::WhyInvalid(config)) << row->id;
  }
  EXPECT_EQ(config, EverythingOn());
  // A technique that is left out can't be added.
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !row.in_ladder || config.*row.field != 0) continue;
    sdpa::Config more = config;
    more.*row.field = FirstOnLevel(row);
    EXPECT_TRUE(sdpa::WhyInvalid(more)) << row.id;
  }
}

TEST(LadderDesign, TakesTheFirstOnLevelOfEachToggle) {
  const Design design = LadderDesign();
  EXPECT_EQ(ArmNamed(design, "ladder:cp_async_stages").config.cp_async_stages, 2);
  EXPECT_EQ(ArmNamed(design, "ladder:wmma_pv").config.wmma_pv, 1);
}

TEST(LadderDesign, PlantsControlsOnTheLastStep) {
  const Design design = LadderDesign();
  const DesignArm& aa = ArmNamed(design, "control:aa");
  EXPECT_EQ(aa.role, "aa");
  EXPECT_EQ(aa.base, "ladder:wmma_pv");
  EXPECT_EQ(aa.config, ArmNamed(design, aa.base).config);
  const DesignArm& null = ArmNamed(design, "control:null_toggle");
  EXPECT_EQ(null.role, "null");
  EXPECT_EQ(null.toggle, "null_toggle");
  EXPECT_EQ(null.base, "ladder:wmma_pv");
  EXPECT_THAT(Differences(design, null.name, null.base), ElementsAre("null_toggle"));
}

TEST(OneOnDesign, AddsEachToggleToExactlyWhatItNeeds) {
  const Design design = OneOnDesign();
  std::set<std::string> added;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "step") continue;
    EXPECT_EQ(arm.name, "one_on:" + arm.toggle);
    const DesignArm& base = ArmNamed(design, arm.base);
    EXPECT_TRUE(added.insert(arm.toggle).second) << arm.name;
    // Nothing in the base could be spared: without it the toggle would be illegal.
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (base.config.*row.field == 0) continue;
      sdpa::Config spared = arm.config;
      spared.*row.field = 0;
      EXPECT_TRUE(sdpa::WhyInvalid(spared)) << arm.name << " does without " << row.id;
    }
  }
  std::set<std::string> ladder;
  for (const sdpa::ToggleRow* row : LadderToggles()) ladder.insert(std::string(row->id));
  EXPECT_EQ(added, ladder);
}

TEST(OneOnDesign, TimesNoConfigurationTwiceButForTheControl) {
  const Design design = OneOnDesign();
  std::set<std::string> configs;
  for (const DesignArm& arm : design.arms) {
    if (arm.role == "aa") continue;
    EXPECT_TRUE(configs.insert(sdpa::ConfigName(arm.config)).second) << arm.name;
  }
  EXPECT_EQ(ArmNamed(design, "one_on:cp_async_stages").base, "one_on:vector_loads");
  EXPECT_EQ(ArmNamed(design, "one_on:warp_shuffle").base, "minimal_scalar");
}

TEST(LeaveOneOutDesign, DropsTheToggleAndItsDependentsAndNothingElse) {
  const Design design = LeaveOneOutDesign();
  const DesignArm& full = design.arms.front();
  EXPECT_EQ(full.name, "leave_one_out:full");
  EXPECT_EQ(full.config, EverythingOn());
  std::map<std::string, std::set<std::string>> dropped;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "without") continue;
    EXPECT_EQ(arm.base, full.name);
    dropped[arm.name] = Differences(arm.config, full.config);
    EXPECT_TRUE(dropped[arm.name].contains(arm.toggle)) << arm.name;
    // Every other toggle that was dropped can't come back without it.
    for (const std::string& id : dropped[arm.name]) {
      if (id == arm.toggle) continue;
      for (const sdpa::ToggleRow& row : sdpa::kToggles) {
        if (row.id != id) continue;
        sdpa::Config back = arm.config;
        back.*row.field = FirstOnLevel(row);
        EXPECT_TRUE(sdpa::WhyInvalid(back)) << arm.name << " drops " << id;
      }
    }
  }
  EXPECT_EQ(dropped.size(), 7u);
  EXPECT_EQ(dropped["without:wmma_pv"], std::set<std::string>{"wmma_pv"});
  EXPECT_EQ(dropped["without:vector_loads(+dependents)"],
            (std::set<std::string>{"vector_loads", "cp_async_stages"}));
  EXPECT_EQ(dropped["without:kv_tiling(+dependents)"].size(), 6u);
}

TEST(FactorialDesign, HoldsEveryLegalCombinationAndDeclaresTheOthers) {
  const Design design = DeclaredFactorialDesign();
  std::set<std::string> configs;
  int steps = 0;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "base" && arm.role != "step") continue;
    EXPECT_TRUE(configs.insert(sdpa::ConfigName(arm.config)).second) << arm.name;
    EXPECT_EQ(arm.config.kv_tiling, 1) << arm.name;
    EXPECT_EQ(arm.config.tile_m32_warps4, 1) << arm.name;
    steps += arm.role == "step" ? 1 : 0;
  }
  // cp.async needs vector loads: 8 of 32 combinations have one without the other.
  EXPECT_EQ(configs.size(), 24u);
  EXPECT_EQ(steps, 23);
  ASSERT_EQ(design.infeasible.size(), 8u);
  for (const InfeasibleCell& cell : design.infeasible) {
    EXPECT_EQ(cell.toggle, "cp_async_stages") << cell.name;
    EXPECT_EQ(cell.missing, "vector_loads") << cell.name;
  }
}

TEST(FactorialDesign, SaysOfACellThatARuleExcludesWhatItCanNotGoWithAndWhy) {
  using sdpa::Config;
  const Design design =
      FactorialDesign("factorial:x", {&Config::wmma_qk, &Config::xor_swizzle}, {});
  ASSERT_EQ(design.infeasible.size(), 1u);
  const InfeasibleCell& cell = design.infeasible[0];
  EXPECT_EQ(cell.name, "cell:wmma_qk+xor_swizzle");
  EXPECT_EQ(cell.toggle, "xor_swizzle");
  EXPECT_EQ(cell.missing, "wmma_qk");
  EXPECT_EQ(cell.Reason().find("xor_swizzle can't go with wmma_qk: "), 0u) << cell.Reason();
  EXPECT_NE(cell.why.find("leading dimension"), std::string::npos);
  EXPECT_EQ(DeclaredFactorialDesign().infeasible[0].Reason(), "cp_async_stages needs vector_loads");
}

// Families exclude each other without a reason of their own.
TEST(FactorialDesign, NeverCallsAnExclusionANeed) {
  using sdpa::Config;
  const Design design = FactorialDesign("factorial:x", {&Config::kv_tiling, &Config::wgmma}, {});
  ASSERT_EQ(design.infeasible.size(), 1u);
  EXPECT_EQ(design.infeasible[0].name, "cell:kv_tiling+wgmma");
  EXPECT_NE(design.infeasible[0].Reason().find("can't go with"), std::string::npos);
}

TEST(FactorialDesign, FixesWhatItsTogglesNeedBeyondThemselves) {
  using sdpa::Config;
  const Design design =
      FactorialDesign("factorial:x", {&Config::cp_async_stages, &Config::wmma_pv}, {});
  EXPECT_EQ(ArmNamed(design, "cell:none").config, (Config{.kv_tiling = 1, .vector_loads = 1}));
  EXPECT_EQ(ArmNamed(design, "cell:cp_async_stages+wmma_pv").config,
            (Config{.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 2, .wmma_pv = 1}));
  EXPECT_TRUE(design.infeasible.empty());
}

// --- Toggles of one mask -------------------------------------------------------

TEST(WithoutDesigns, RunOneInstanceUnderAFullMaskWithAndWithoutAToggleOfTheCausalOne) {
  int arms = 0;
  for (const Design& design : WithoutDesigns()) {
    for (const DesignArm& arm : design.arms) {
      if (arm.toggle != "wgmma_own_tiles") continue;
      ++arms;
      const sdpa::Config& with = ArmNamed(design, arm.base).config;
      const int head_dim = design.head_dims.front();
      EXPECT_EQ(sdpa::Specialise(arm.config, head_dim, false),
                sdpa::Specialise(with, head_dim, false));
      EXPECT_NE(sdpa::Specialise(arm.config, head_dim, true),
                sdpa::Specialise(with, head_dim, true));
    }
  }
  EXPECT_EQ(arms, 4);  // of two kernels at head_dim 64
}

// --- mma ------------------------------------------------------------------------

TEST(MmaLaunchDesign, RunsOneInstanceInEveryArmOfAToggleThatReachesNoCode) {
  const Design design = MmaLaunchDesign();
  const sdpa::Config base = sdpa::Specialise(design.arms.front().config, 64, false);
  int launch_side = 0;
  for (const DesignArm& arm : design.arms) {
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.id != arm.toggle || !row.launch_side) continue;
      ++launch_side;
      EXPECT_NE(arm.config, design.arms.front().config) << arm.name;
      EXPECT_EQ(sdpa::Specialise(arm.config, 64, false), base) << arm.name;
    }
  }
  EXPECT_EQ(launch_side, 2);
  EXPECT_EQ(sdpa::MinArch(base), 0);
  EXPECT_EQ(sdpa::MinArch(ArmNamed(design, "mma_launch:base+mma_dependent_launch").config), 90);
}

// The library's kernel for prompts on GPUs without wgmma is the one that the ladder ends in.
TEST(MmaDesign, EndsInTheLibrarysKernelForManyRows) {
  sdpa::Config tiled = sdpa::kTiledMma;
  tiled.strided = false;
  EXPECT_EQ(sdpa::ConfigName(tiled), sdpa::ConfigName(MmaWideCore()));
  EXPECT_EQ(sdpa::ConfigName(sdpa::QInMmaRegisters(tiled)), sdpa::ConfigName(MmaEverythingOn()));
}

TEST(FusionDesign, TakesWhatStandsInFrontOfAttentionOneStepAtATimeIntoIt) {
  const Design design = FusionDesign();
  EXPECT_TRUE(design.projected);
  std::set<std::string> steps;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "step") continue;
    steps.insert(arm.toggle);
    for (const sdpa::Config& config : Specialisations(design, arm)) {
      EXPECT_TRUE(config.projected) << arm.name;
      EXPECT_STREQ(sdpa::WhyIllegal(sdpa::MmaShapeOf(config)), "") << arm.name;
    }
  }
  EXPECT_EQ(steps, (std::set<std::string>{"project_mma", "fuse_layernorm", "fuse_projection"}));
  // What is launched in front reaches no attention kernel that takes its rows.
  const sdpa::Config unfused = Specialisations(design, ArmNamed(design, "fusion:unfused"))[0];
  EXPECT_EQ(Specialisations(design, ArmNamed(design, "fusion:project_mma+fuse_layernorm"))[0],
            unfused);
  EXPECT_EQ(sdpa::InstanceName(unfused).substr(sdpa::InstanceName(unfused).find('@')),
            "@projected");
  // Every prediction of its rows is of an arm.
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!steps.contains(std::string(row.id))) continue;
    EXPECT_TRUE(std::any_of(design.arms.begin(), design.arms.end(), [&](const DesignArm& arm) {
      return arm.toggle == row.id && IsPredicted(design, row, arm.name);
    })) << row.id;
  }
}

// --- stage2_plus ----------------------------------------------------------------

TEST(Stage2PlusDesign, HoldsEachLevelBeyondTheLadderAloneOnTheLaddersEnd) {
  const Design design = Stage2PlusDesign();
  EXPECT_EQ(design.arms.front().config, EverythingOn());
  int levels = 0;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || row.in_ladder || !Includes(row.families, sdpa::Family::kSmem)) continue;
    for (std::size_t i = 1; i < row.levels.count; ++i) {
      const std::string name = "stage2:" + LevelName(row, row.levels.values[i]);
      const bool infeasible =
          std::any_of(design.infeasible.begin(), design.infeasible.end(),
                      [&](const InfeasibleCell& cell) { return cell.name == name; });
      if (infeasible) continue;
      ++levels;
      const DesignArm& arm = ArmNamed(design, name);
      EXPECT_EQ(arm.role, "step");
      EXPECT_EQ(arm.toggle, row.id);
      EXPECT_EQ(arm.base, "stage2");
      EXPECT_EQ(arm.config.*row.field, row.levels.values[i]);
    }
  }
  EXPECT_GT(levels, 20);
}

TEST(Stage2PlusDesign, HoldsTheLevelsThatTheLadderLeftOut) {
  const Design design = Stage2PlusDesign();
  EXPECT_EQ(ArmNamed(design, "stage2:cp_async_stages=0").role, "without");
  EXPECT_EQ(ArmNamed(design, "stage2:cp_async_stages=3").config.cp_async_stages, 3);
  EXPECT_EQ(ArmNamed(design, "stage2:cp_async_stages=4").base, "stage2");
}

TEST(Stage2PlusDesign, SaysWhyWmmaHasNoSwizzleAndHasItOnTheFp32Pipes) {
  const Design design = Stage2PlusDesign();
  ASSERT_EQ(design.infeasible.size(), 1u);
  EXPECT_EQ(design.infeasible[0].name, "stage2:xor_swizzle");
  EXPECT_EQ(design.infeasible[0].missing, "wmma_qk");
  EXPECT_NE(design.infeasible[0].why.find("leading dimension"), std::string::npos);
  const DesignArm& swizzled = ArmNamed(design, "fp32_pipes:xor_swizzle");
  EXPECT_EQ(swizzled.base, "fp32_pipes");
  EXPECT_EQ(swizzled.config.wmma_qk + swizzled.config.wmma_pv, 0);
}

TEST(Stage2PlusDesign, ChainsEachStepToTheOneBefore) {
  const Design design = Stage2PlusDesign();
  const DesignArm& last =
      ArmNamed(design, "stage2:softmax_in_registers=3+exp_method=1+tile_n=128+producer_warps=2");
  EXPECT_EQ(last.toggle, "producer_warps");
  EXPECT_EQ(last.base, "stage2:softmax_in_registers=3+exp_method=1+tile_n=128");
}

TEST(Stage2PlusDesign, IsSpokenOfByThePredictionsOfFirstLevelsAlone) {
  const Design design = Stage2PlusDesign();
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.field == &sdpa::Config::tile_m) {
      EXPECT_TRUE(IsPredicted(design, row, "stage2:tile_m=16"));
      EXPECT_FALSE(IsPredicted(design, row, "stage2:tile_m=64"));
      EXPECT_FALSE(IsPredicted(design, row, "stage2:tile_m=16+tile_n=64"));
    }
    if (row.field == &sdpa::Config::cp_async_stages) {
      EXPECT_FALSE(IsPredicted(design, row, "stage2:cp_async_stages=3"));
    }
  }
}

TEST(WmmaD128Design, HasArmsOfTheSmemFamilyAtHeadDim128Alone) {
  const Design design = WmmaD128Design();
  EXPECT_EQ(design.head_dims, (std::vector<int>{128}));
  EXPECT_EQ(design.arms.front().config, EverythingOn());
  for (const DesignArm& arm : design.arms) {
    for (const sdpa::Config& config : Specialisations(design, arm)) {
      EXPECT_EQ(config.head_dim, 128) << arm.name;
      EXPECT_EQ(sdpa::FamilyOf(config), sdpa::Family::kSmem) << arm.name;
    }
  }
  EXPECT_EQ(ArmNamed(design, "wmma_d128:without_wmma_pv").config.wmma_pv, 0);
  const std::string chain = "wmma_d128:softmax_in_registers=3+exp_method=1+tile_n=64";
  EXPECT_EQ(ArmNamed(design, chain + "+tile_m=64").base, chain);
}

// Its arms run on shapes of head_dim 64 too, as every design's do.
TEST(WmmaD128Design, HasTheLikeOfEachArmAtHeadDim64) {
  std::vector<sdpa::Config> narrow;
  for (const Design& other : {LadderDesign(), Stage2PlusDesign()}) {
    for (const DesignArm& arm : other.arms) narrow.push_back(arm.config);
  }
  for (const DesignArm& arm : WmmaD128Design().arms) {
    EXPECT_NE(std::find(narrow.begin(), narrow.end(), arm.config), narrow.end()) << arm.name;
  }
}

TEST(WmmaD128Design, SaysThatSharedMemoryHasNoRoomForAThirdStageOf128Keys) {
  const Design design = WmmaD128Design();
  ASSERT_EQ(design.infeasible.size(), 1u);
  const InfeasibleCell& cell = design.infeasible[0];
  EXPECT_EQ(cell.name, "wmma_d128:tile_n=128+cp_async_stages=3");
  EXPECT_EQ(cell.Reason().find("cp_async_stages can't go with head_dim=128: "), 0u)
      << cell.Reason();
  EXPECT_NE(cell.why.find("227 KiB"), std::string::npos);
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
      for (const sdpa::Config& config : Specialisations(design, arm)) {
        EXPECT_FALSE(sdpa::WhyInvalid(config)) << sdpa::InstanceName(config);
      }
      EXPECT_EQ(arm.role == "base", arm.base.empty()) << arm.name;
      if (!arm.base.empty()) {
        EXPECT_TRUE(earlier.contains(arm.base)) << arm.name << " against " << arm.base;
      }
      EXPECT_TRUE(earlier.insert(arm.name).second) << arm.name;
    }
  }
}

TEST(AllDesigns, LeadFromAnArmToTheNextByTheToggleThatIsJudged) {
  int judged = 0;
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      if (arm.role != "step" && arm.role != "without") continue;
      const std::set<std::string> differ = Differences(design, arm.name, arm.base);
      EXPECT_TRUE(differ.contains(arm.toggle)) << arm.name;
      // What needs a toggle goes with it; FP8 is judged with the sums that keep it right; a
      // family's first step leads from the end of another one.
      if (arm.name.ends_with("(+dependents)") || arm.toggle == "wgmma_fp8" ||
          sdpa::FamilyOf(arm.config) != sdpa::FamilyOf(ArmNamed(design, arm.base).config)) {
        continue;
      }
      EXPECT_EQ(differ.size(), 1u) << arm.name;
      ++judged;
    }
  }
  EXPECT_GT(judged, 300);
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
