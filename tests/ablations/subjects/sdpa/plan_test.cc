// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/plan.h"

#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/designs/own_designs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<std::string> Names(const absl::StatusOr<std::vector<T>>& rows) {
  std::vector<std::string> names;
  if (!rows.ok()) {
    ADD_FAILURE() << rows.status();
    return names;
  }
  for (const T& row : *rows) names.emplace_back(row.name);
  return names;
}

// The message of an InvalidArgument.
template <typename T>
std::string Refusal(const absl::StatusOr<T>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  return std::string(result.status().message());
}

TEST(FindDesign, FindsEachDesignOfTheBuild) {
  for (const char* name : {"ladder", "one_on", "leave_one_out", "factorial"}) {
    const Design design = FindDesign(name).value();
    EXPECT_EQ(design.name, name);
    EXPECT_EQ(IsFactorial(name), std::string(name) == "factorial");
  }
}

TEST(FindDesign, FindsTheLadder) {
  const Design design = FindDesign("ladder").value();
  EXPECT_EQ(design.name, "ladder");
  EXPECT_GT(design.arms.size(), 8u);
}

TEST(FindDesign, SuggestsTheNearestName) {
  EXPECT_THAT(Refusal(FindDesign("lader")),
              AllOf(HasSubstr("unknown design 'lader'"), HasSubstr("did you mean 'ladder'?"),
                    HasSubstr("`warpledger list designs`")));
}

TEST(FindDesign, MakesAFactorialOfNamedToggles) {
  const Design design = FindDesign("factorial:wmma_pv, cp_async_stages@tile_m32_warps4").value();
  // What the toggles need is always on; they stand in the registry's order.
  EXPECT_EQ(sdpa::ConfigName(design.arms.front().config), "kv_tiling+tile_m32_warps4+vector_loads");
  EXPECT_EQ(design.arms[1].name, "cell:cp_async_stages");
  EXPECT_EQ(design.arms.size(), 4u + 2u);  // and two controls
  EXPECT_EQ(design.name, "factorial:wmma_pv, cp_async_stages@tile_m32_warps4");
  EXPECT_TRUE(IsFactorial(design.name));
}

TEST(FindDesign, DeclaresTheCellsThatAnOwnFactorialCanNotHave) {
  const Design design = FindDesign("factorial:kv_tiling,wmma_pv").value();
  ASSERT_EQ(design.infeasible.size(), 1u);
  EXPECT_EQ(design.infeasible[0].name, "cell:wmma_pv");
  EXPECT_EQ(design.infeasible[0].missing, "kv_tiling");
}

TEST(FindDesign, RefusesAFactorialThatMakesNoSense) {
  EXPECT_THAT(Refusal(FindDesign("factorial:")), HasSubstr("spans 0 toggles; name 1 to 7"));
  EXPECT_THAT(Refusal(FindDesign("factorial:wmma_pw")),
              AllOf(HasSubstr("unknown toggle 'wmma_pw'"), HasSubstr("'wmma_pv'")));
  EXPECT_THAT(Refusal(FindDesign("factorial:null_toggle")), HasSubstr("unknown toggle"));
  EXPECT_THAT(Refusal(FindDesign("factorial:wmma_pv@nonesuch")), HasSubstr("'nonesuch'"));
  EXPECT_THAT(Refusal(FindDesign("factorial:kv_tiling@wmma_pv")),
              HasSubstr("kv_tiling is switched, but its background names it or needs it"));
}

TEST(FindDesign, MakesASweepAndRefusesOneThatMakesNoSense) {
  const Design design = FindDesign("sweep:cp_async_stages@wmma_pv").value();
  EXPECT_EQ(design.arms.front().name, "sweep:cp_async_stages=0");
  EXPECT_THAT(Refusal(FindDesign("sweep:kv_tiling,wmma_pv")), HasSubstr("sweeps 2 toggles"));
  EXPECT_THAT(Refusal(FindDesign("sweep:xor_swizzle@wmma_qk")),
              AllOf(HasSubstr("xor_swizzle can't go with wmma_qk"), HasSubstr("drop one of them")));
}

TEST(FindDesign, RefusesAFactorialOfTwoTogglesThatExcludeEachOther) {
  EXPECT_THAT(Refusal(FindDesign("factorial:wmma_qk,xor_swizzle")),
              AllOf(HasSubstr("xor_swizzle can't go with wmma_qk"), HasSubstr("span them in two")));
  // Excluded by what is always on, the toggle is in no cell.
  const Design design = FindDesign("factorial:cp_async_stages,smem_layout,xor_swizzle").value();
  EXPECT_EQ(design.infeasible.size(), 4u);
}

TEST(ParseOwnDesign, TakesNoDesignOfTheSuiteForOneOfOnesOwn) {
  for (const char* name : {"ladder", "factorial", "", "factorials:kv_tiling"}) {
    EXPECT_FALSE(IsOwnDesign(name)) << name;
    EXPECT_THAT(ParseOwnDesign(name).error, HasSubstr("no factorial:…")) << name;
  }
}

TEST(SplitNames, DropsSpacesEmptyNamesAndRepeats) {
  EXPECT_THAT(SplitNames(" a ,b,,a,\tc d\n"), ElementsAre("a", "b", "c d"));
  EXPECT_THAT(SplitNames(""), ElementsAre());
  EXPECT_THAT(SplitNames(" , "), ElementsAre());
}

TEST(HowToBuild, NamesTheOptionAndTheDesign) {
  const Design design = FindDesign("factorial:wmma_pv,vector_loads").value();
  EXPECT_THAT(HowToBuild(design), HasSubstr("WARPLEDGER_EXTRA_DESIGNS="));
  EXPECT_THAT(HowToBuild(design), HasSubstr("factorial:wmma_pv,vector_loads' && cmake --build"));
}

TEST(AllVariants, HoldsEachConfigurationOnceUnderItsFirstName) {
  const std::vector<NamedVariant> variants = AllVariants();
  std::set<std::string> names;
  std::set<std::string> configs;
  for (const NamedVariant& variant : variants) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    EXPECT_TRUE(configs.insert(sdpa::ConfigName(variant.config)).second) << variant.name;
  }
  EXPECT_EQ(variants.front().name, "minimal_scalar");
  // The A/A control is the last step over again.
  EXPECT_TRUE(names.contains("ladder:wmma_pv"));
  EXPECT_FALSE(names.contains("control:aa"));
  EXPECT_TRUE(names.contains("control:null_toggle"));
}

TEST(AllVariants, CoversEveryArmOfEveryDesign) {
  std::set<std::string> configs;
  for (const NamedVariant& variant : AllVariants()) configs.insert(ConfigName(variant.config));
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      EXPECT_TRUE(configs.contains(sdpa::ConfigName(arm.config))) << arm.name;
    }
  }
}

TEST(FindVariant, FindsArmsByName) {
  for (const Design& design : AllDesigns()) {
    for (const DesignArm& arm : design.arms) {
      const NamedVariant variant = FindVariant(arm.name).value();
      EXPECT_EQ(variant.name, arm.name);
      EXPECT_EQ(variant.config, arm.config);
    }
  }
}

TEST(FindVariant, ReadsPrintedConfigurationsBack) {
  for (const NamedVariant& variant : AllVariants()) {
    const NamedVariant read = FindVariant(sdpa::ConfigName(variant.config)).value();
    EXPECT_EQ(read.config, variant.config) << variant.name;
  }
}

TEST(FindVariant, TakesTogglesInAnyOrderAndLevelsSpelledOut) {
  const auto variant = FindVariant("vector_loads+kv_tiling+cp_async_stages=2");
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->config,
            (sdpa::Config{.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 2}));
}

TEST(FindVariant, NamesTheToggleThatAnIllegalCombinationLacks) {
  EXPECT_THAT(
      Refusal(FindVariant("kv_tiling+cp_async_stages")),
      AllOf(HasSubstr("'kv_tiling+cp_async_stages'"),
            HasSubstr("cp_async_stages needs vector_loads"), HasSubstr("add 'vector_loads'")));
  EXPECT_THAT(Refusal(FindVariant("wmma_pv")), HasSubstr("wmma_pv needs kv_tiling"));
}

TEST(FindVariant, RefusesLevelsThatAToggleDoesNotHave) {
  EXPECT_THAT(Refusal(FindVariant("kv_tiling+vector_loads+cp_async_stages=7")),
              AllOf(HasSubstr("cp_async_stages"), HasSubstr("no such level")));
  EXPECT_THAT(Refusal(FindVariant("kv_tiling=two")),
              AllOf(HasSubstr("'two'"), HasSubstr("no level of kv_tiling")));
  EXPECT_THAT(Refusal(FindVariant("kv_tiling=")), HasSubstr("'' is no level of kv_tiling"));
  EXPECT_THAT(Refusal(FindVariant("kv_tiling=99999999999")), HasSubstr("no level of kv_tiling"));
}

TEST(FindVariant, SuggestsTheNearestToggleOrArm) {
  EXPECT_THAT(Refusal(FindVariant("kv_tilling")), HasSubstr("did you mean 'kv_tiling'"));
  EXPECT_THAT(Refusal(FindVariant("ladder:wmma_vp")), HasSubstr("'ladder:wmma_pv'"));
  EXPECT_THAT(Refusal(FindVariant("hopper_decode:base+wgmma_pack_heds")),
              AllOf(HasSubstr("unknown variant 'hopper_decode:base+wgmma_pack_heds'"),
                    HasSubstr("did you mean 'hopper_decode:base+wgmma_pack_heads'")));
  EXPECT_THAT(Refusal(FindVariant("kv_tiling+warp_shufle")),
              AllOf(HasSubstr("unknown variant 'warp_shufle'"), HasSubstr("'warp_shuffle'")));
}

TEST(FindVariant, RefusesEmptyParts) {
  EXPECT_THAT(Refusal(FindVariant("")), HasSubstr("unknown variant ''"));
  EXPECT_THAT(Refusal(FindVariant("kv_tiling+")), HasSubstr("unknown variant ''"));
}

TEST(ParseVariants, TakesAllOrAListInTheOrderGiven) {
  EXPECT_EQ(Names(ParseVariants("all")).size(), AllVariants().size());
  EXPECT_THAT(Names(ParseVariants("ladder:wmma_pv, minimal_scalar")),
              ElementsAre("ladder:wmma_pv", "minimal_scalar"));
}

TEST(ParseVariants, DropsRepeatsAndEmptyNames) {
  EXPECT_THAT(Names(ParseVariants("kv_tiling,,minimal_scalar,kv_tiling,")),
              ElementsAre("kv_tiling", "minimal_scalar"));
}

TEST(ParseVariants, RefusesAnEmptyList) {
  EXPECT_THAT(Refusal(ParseVariants("")), HasSubstr("'all'"));
  EXPECT_THAT(Refusal(ParseVariants(" , ")), HasSubstr("'all'"));
}

TEST(ParseVariants, FailsWhenAnyOfThemIsUnknown) {
  EXPECT_THAT(Refusal(ParseVariants("kv_tiling,nonesuch")), HasSubstr("'nonesuch'"));
}

TEST(ParseShapes, TakesAllOrTheLaddersOrAListInTheOrderGiven) {
  EXPECT_EQ(Names(ParseShapes("all")).size(), std::size(sdpa::kShapes));
  EXPECT_THAT(Names(ParseShapes("ladder")),
              ElementsAre("small", "medium", "mission_a", "mission_b", "long"));
  EXPECT_THAT(Names(ParseShapes("long,small,long")), ElementsAre("long", "small"));
}

TEST(ParseShapes, SuggestsTheNearestName) {
  EXPECT_THAT(Refusal(ParseShapes("small,misson_b")),
              AllOf(HasSubstr("unknown shape 'misson_b'"), HasSubstr("did you mean 'mission_b'"),
                    HasSubstr("`warpledger list shapes`")));
  EXPECT_THAT(Refusal(ParseShapes("")), HasSubstr("no shape named"));
}

TEST(ParseInputKinds, TakesAllOrAList) {
  EXPECT_THAT(Names(ParseInputKinds("all")),
              ElementsAre("normal", "outliers", "large_logits", "constant"));
  EXPECT_THAT(Names(ParseInputKinds("constant,normal")), ElementsAre("constant", "normal"));
}

// `warpledger list` shows them under "inputs".
TEST(ParseInputKinds, SuggestsTheNearestNameAndACommandThatExists) {
  EXPECT_THAT(Refusal(ParseInputKinds("norml")),
              AllOf(HasSubstr("'norml'"), HasSubstr("did you mean 'normal'"),
                    HasSubstr("`warpledger list inputs`")));
}

TEST(FindVariant, RefusesAToggleNamedTwiceAndTheBaselineAsAToggle) {
  EXPECT_THAT(std::string(FindVariant("kv_tiling+kv_tiling").status().message()),
              HasSubstr("names kv_tiling twice"));
  EXPECT_THAT(std::string(FindVariant("minimal_scalar+kv_tiling").status().message()),
              HasSubstr("minimal_scalar is every toggle off"));
}

TEST(FindVariant, GivesTheCanonicalNameWhateverTheOrder) {
  EXPECT_EQ(FindVariant("warp_shuffle+kv_tiling")->name, "kv_tiling+warp_shuffle");
  EXPECT_EQ(FindVariant("kv_tiling=0")->name, "minimal_scalar");
}

}  // namespace
}  // namespace warpledger::ablations
