// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/plan.h"

#include <iterator>
#include <set>

#include "ablations/subjects/sdpa/designs/own_designs.h"
#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

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

TEST(FindDesign, FindsEachDesignOfTheBuild) {
  for (const char* name : {"ladder", "one_on", "leave_one_out", "factorial"}) {
    const Design design = FindDesign(name).value();
    EXPECT_EQ(design.name, name);
    EXPECT_EQ(design.span == Span::kFactorial, std::string(name) == "factorial");
    EXPECT_GT(design.arms.size(), 8u) << name;
  }
}

TEST(FindDesign, MakesAFactorialOfNamedToggles) {
  const Design design = FindDesign("factorial:wmma_pv, cp_async_stages@tile_m32_warps4").value();
  // What the toggles need is always on; they stand in the registry's order.
  EXPECT_EQ(sdpa::ConfigName(design.arms.front().config), "kv_tiling+tile_m32_warps4+vector_loads");
  EXPECT_EQ(design.arms[1].name, "cell:cp_async_stages");
  EXPECT_EQ(design.arms.size(), 4u + 2u);  // and two controls
  EXPECT_EQ(design.name, "factorial:wmma_pv, cp_async_stages@tile_m32_warps4");
  EXPECT_EQ(design.span, Span::kFactorial);
  EXPECT_EQ(SpanOfFormula(design.name), Span::kFactorial);
}

TEST(FindDesign, DeclaresTheCellsThatAnOwnFactorialCanNotHave) {
  const Design design = FindDesign("factorial:kv_tiling,wmma_pv").value();
  ASSERT_EQ(design.infeasible.size(), 1u);
  EXPECT_EQ(design.infeasible[0].name, "cell:wmma_pv");
  EXPECT_EQ(design.infeasible[0].missing, "kv_tiling");
}

TEST(FindDesign, MakesASweepAndRefusesOneThatMakesNoSense) {
  const Design design = FindDesign("sweep:cp_async_stages@wmma_pv").value();
  EXPECT_EQ(design.arms.front().name, "sweep:cp_async_stages=0");
  EXPECT_THAT(FindDesign("sweep:kv_tiling,wmma_pv"),
              StatusIs(kInvalid, HasSubstr("sweeps 2 toggles")));
  EXPECT_THAT(FindDesign("sweep:xor_swizzle@wmma_qk"),
              StatusIs(kInvalid, AllOf(HasSubstr("xor_swizzle can't go with wmma_qk"),
                                       HasSubstr("drop one of them"))));
}

TEST(FindDesign, RefusesAFactorialOfTwoTogglesThatExcludeEachOther) {
  EXPECT_THAT(FindDesign("factorial:wmma_qk,xor_swizzle"),
              StatusIs(kInvalid, AllOf(HasSubstr("xor_swizzle can't go with wmma_qk"),
                                       HasSubstr("span them in two"))));
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
  const auto variant = FindVariant("vector_loads+kv_tiling+cp_async_stages=2").value();
  EXPECT_EQ(variant.config,
            (sdpa::Config{.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 2}));
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

TEST(ParseShapes, TakesAllOrTheLaddersOrAListInTheOrderGiven) {
  EXPECT_EQ(Names(ParseShapes("all")).size(), std::size(sdpa::kShapes));
  EXPECT_THAT(Names(ParseShapes("ladder")),
              ElementsAre("small", "tiny", "medium", "mission_a", "mission_b", "long"));
  EXPECT_THAT(Names(ParseShapes("long,small,long")), ElementsAre("long", "small"));
  // Six lengths, two masks, three head dimensions in fp16 and one in bf16.
  EXPECT_EQ(Names(ParseShapes("fa3")).size(), 6u * 2u * 4u);
  EXPECT_THAT(Names(ParseShapes("fa3")), ::testing::Each(::testing::StartsWith("fa3_d")));
}

TEST(ParseShapes, TakesNamesThatSayTheSizes) {
  const auto shapes = ParseShapes("b3_h8_s256_d64,long,b1_h32x8_s1x8192_d128_causal_bf16");
  EXPECT_THAT(Names(shapes),
              ElementsAre("b3_h8_s256_d64", "long", "b1_h32x8_s1x8192_d128_causal_bf16"));
  EXPECT_EQ((*shapes)[0].problem, (sdpa::Problem{3, 8, 8, 256, 256, 64, false}));
  EXPECT_EQ((*shapes)[2].problem,
            (sdpa::Problem{1, 32, 8, 1, 8192, 128, true, sdpa::Dtype::kBf16}));
}

TEST(ParseShapes, TakesTheNameOnPagesForTheNameInRecords) {
  EXPECT_THAT(Names(ParseShapes("b1_h8_s512_d64,mission_a,b2_h8_s256_d64,B=1:H=8:S=512:D=64:bf16")),
              ElementsAre("mission_b", "mission_a", "mission_b_bf16"));
}

TEST(ParseShapes, TakesAProblemByItsParameters) {
  EXPECT_THAT(Names(ParseShapes("B=1:H=16:S=3000:D=128:causal,long")),
              ElementsAre("b1_h16_s3000_d128_causal", "long"));
  EXPECT_THAT(Names(ParseShapes("H=32x8:S=1x8192:D=128:bf16")),
              ElementsAre("b1_h32x8_s1x8192_d128_bf16"));
}

TEST(ParseInputKinds, TakesAllOrAList) {
  EXPECT_THAT(Names(ParseInputKinds("all")),
              ElementsAre("normal", "outliers", "large_logits", "constant"));
  EXPECT_THAT(Names(ParseInputKinds("constant,normal")), ElementsAre("constant", "normal"));
}

TEST(FindVariant, GivesTheCanonicalNameWhateverTheOrder) {
  EXPECT_EQ(FindVariant("warp_shuffle+kv_tiling")->name, "kv_tiling+warp_shuffle");
  EXPECT_EQ(FindVariant("kv_tiling=0")->name, "minimal_scalar");
}

// --- What is refused ------------------------------------------------------------

struct Refusal {
  const char* given;
  std::vector<const char*> said;
};

template <typename Parse>
void ExpectRefusals(Parse parse, const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    for (const char* said : refusal.said) {
      EXPECT_THAT(parse(refusal.given), StatusIs(kInvalid, HasSubstr(said))) << refusal.given;
    }
  }
}

TEST(FindDesign, SaysWhatIsWrongAndWhatIsNear) {
  ExpectRefusals(
      [](const char* given) { return FindDesign(given); },
      {{"lader", {"unknown design 'lader'", "did you mean 'ladder'?", "`warpledger list designs`"}},
       {"factorial:", {"spans 0 toggles; name 1 to 7"}},
       {"factorial:wmma_pw", {"unknown toggle 'wmma_pw'", "'wmma_pv'"}},
       {"factorial:null_toggle", {"unknown toggle"}},
       {"factorial:wmma_pv@nonesuch", {"'nonesuch'"}},
       {"factorial:kv_tiling@wmma_pv",
        {"kv_tiling is switched, but its background names it or needs it"}}});
}

TEST(FindVariant, SaysWhatIsWrongAndWhatIsNear) {
  ExpectRefusals(
      [](const char* given) { return FindVariant(given); },
      {{"kv_tiling+cp_async_stages",
        {"'kv_tiling+cp_async_stages'", "cp_async_stages needs vector_loads",
         "add 'vector_loads'"}},
       {"wmma_pv", {"wmma_pv needs kv_tiling"}},
       {"kv_tiling+vector_loads+cp_async_stages=7", {"cp_async_stages", "no such level"}},
       {"kv_tiling=two", {"'two'", "no level of kv_tiling"}},
       {"kv_tiling=", {"'' is no level of kv_tiling"}},
       {"kv_tiling=99999999999", {"no level of kv_tiling"}},
       {"kv_tilling", {"did you mean 'kv_tiling'"}},
       {"ladder:wmma_vp", {"'ladder:wmma_pv'"}},
       {"hopper_decode:base+wgmma_pack_heds",
        {"unknown variant 'hopper_decode:base+wgmma_pack_heds'",
         "did you mean 'hopper_decode:base+wgmma_pack_heads'"}},
       {"kv_tiling+warp_shufle", {"unknown variant 'warp_shufle'", "'warp_shuffle'"}},
       {"", {"unknown variant ''"}},
       {"kv_tiling+", {"unknown variant ''"}},
       {"kv_tiling+kv_tiling", {"names kv_tiling twice"}},
       {"minimal_scalar+kv_tiling", {"minimal_scalar is every toggle off"}}});
}

TEST(ParseVariants, SaysWhatIsWrong) {
  ExpectRefusals([](const char* given) { return ParseVariants(given); },
                 {{"", {"'all'"}}, {" , ", {"'all'"}}, {"kv_tiling,nonesuch", {"'nonesuch'"}}});
}

TEST(ParseShapes, SaysWhatIsWrongAndWhatIsNear) {
  ExpectRefusals(
      [](const char* given) { return ParseShapes(given); },
      {{"small,misson_b",
        {"unknown shape 'misson_b'", "did you mean 'mission_b'", "`warpledger list shapes`"}},
       {"", {"no shape named"}},
       {"b1_h8x3_s64_d64", {"query heads (8) must be a multiple of key/value heads (3)"}},
       {"b1_h8_s64_d64_bf61", {"unknown shape 'b1_h8_s64_d64_bf61'"}},
       {"B=1:H=16:D=128", {"a size is missing", "it is B=1,H=16,S=3000,D=128"}},
       {"B=1:H=16:S=8:D=64:rows=4", {"'rows=4' is none of its parameters"}},
       {"H=8x3:S=64:D=64", {"must be a multiple of key/value heads (3)"}}});
}

// `warpledger list` shows them under "inputs".
TEST(ParseInputKinds, SuggestsTheNearestNameAndACommandThatExists) {
  ExpectRefusals([](const char* given) { return ParseInputKinds(given); },
                 {{"norml", {"'norml'", "did you mean 'normal'", "`warpledger list inputs`"}}});
}

}  // namespace
}  // namespace warpledger::ablations
