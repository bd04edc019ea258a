// SPDX-License-Identifier: Apache-2.0
#include "reports/model/staleness.h"

#include <gmock/gmock.h>

#include <utility>

#include "reports/model/options.h"

namespace warpledger::report {
namespace {

using ::nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using State = Staleness::State;

RenderOptions Tree(const ordered_json& archs, const std::string& sources = "now") {
  return {
      .kernel_source_sha256 = sources,
      .registry_sha256 = "registry",
      .tree_code =
          ParseTreeCode({{"schema_version", 1}, {"nvcc", "13.0.88"}, {"archs", archs}}).value()};
}

// Two instances of one arm each.
MadeOf DatedRecord() {
  return {.kernel_source_sha256 = "then",
          .registry_sha256 = "registry",
          .nvcc = "13.0.88",
          .compute_capability = "9.0",
          .kernels = {{.arm = "ladder:kv_tiling", .config = "kv_tiling", .code_sha256 = "k"},
                      {.arm = "hopper:wgmma", .config = "wgmma", .code_sha256 = "w"}}};
}

const ordered_json kSame = {{"sm_90", {{"kv_tiling", "k"}}}, {"sm_90a", {{"wgmma", "w"}}}};
const ordered_json kChanged = {{"sm_90", {{"kv_tiling", "k"}}}, {"sm_90a", {{"wgmma", "x"}}}};

std::vector<std::string> Names(const Staleness& staleness) {
  std::vector<std::string> names;
  for (const Staleness::Instance& instance : staleness.instances) names.push_back(instance.name);
  return names;
}

TEST(StalenessTest, ChangedSourcesThatReachNoKernelOfTheRecordAreHarmless) {
  const Staleness staleness = CompareWithTree(DatedRecord(), Tree(kSame));
  EXPECT_FALSE(staleness.IsStale());
  EXPECT_EQ(HarmlessChanges(staleness),
            "Sources changed after this record, but the machine code of all its 2 instances is the "
            "same; launches (grids, tensor maps) are not compared.");
}

TEST(StalenessTest, NothingIsSaidWhereNothingChanged) {
  const Staleness staleness = CompareWithTree(DatedRecord(), Tree(kSame, "then"));
  EXPECT_FALSE(staleness.IsStale());
  EXPECT_EQ(HarmlessChanges(staleness), "");
}

TEST(StalenessTest, OneChangedKernelMakesTheRecordStaleAndIsNamed) {
  const Staleness staleness = CompareWithTree(DatedRecord(), Tree(kChanged));
  EXPECT_TRUE(staleness.IsStale());
  EXPECT_EQ(WhatChanged(staleness),
            "the machine code of 1 of its 2 instances changed: `hopper:wgmma`");
  EXPECT_EQ(HarmlessChanges(staleness), "");
}

TEST(StalenessTest, AKernelThatIsGoneCountsAsChanged) {
  const Staleness staleness =
      CompareWithTree(DatedRecord(), Tree({{"sm_90", {{"kv_tiling", "k"}, {"other", "w"}}}}));
  EXPECT_TRUE(staleness.IsStale());
  EXPECT_THAT(WhatChanged(staleness), HasSubstr("1 of its 2 instances changed: `hopper:wgmma` "
                                                "(gone)"));
}

TEST(StalenessTest, MachineCodeCountsEvenWhereNoSourceChanged) {
  EXPECT_TRUE(CompareWithTree(DatedRecord(), Tree(kChanged, "then")).IsStale());
}

TEST(StalenessTest, OnlyArmsThatRanAChangedKernelAreStale) {
  const Staleness staleness = CompareWithTree(DatedRecord(), Tree(kChanged));
  EXPECT_FALSE(staleness.IsStaleFor({"ladder:kv_tiling"}));
  EXPECT_TRUE(staleness.IsStaleFor({"ladder:kv_tiling", "hopper:wgmma"}));
  EXPECT_FALSE(staleness.IsStaleFor({}));
}

TEST(StalenessTest, ArmsAndShapesThatShareAnInstanceCountItOnce) {
  MadeOf record = DatedRecord();
  record.kernels.push_back({.arm = "control:aa", .config = "kv_tiling", .code_sha256 = "k"});
  // Compiled once for both masks.
  record.kernels.push_back(
      {.arm = "ladder:kv_tiling", .config = "kv_tiling", .causal = true, .code_sha256 = "k"});
  const Staleness staleness = CompareWithTree(record, Tree(kSame));
  EXPECT_THAT(Names(staleness), ElementsAre("ladder:kv_tiling", "hopper:wgmma"));
  EXPECT_THAT(staleness.instances[0].arms, ElementsAre("ladder:kv_tiling", "control:aa"));
}

TEST(StalenessTest, WhatTheProblemFixedTellsInstancesOfAnArmApart) {
  MadeOf record = DatedRecord();
  record.kernels = {{.arm = "hopper:wgmma", .config = "wgmma", .code_sha256 = "w"},
                    {.arm = "hopper:wgmma",
                     .config = "wgmma",
                     .head_dim = 128,
                     .causal = true,
                     .dtype = "bf16",
                     .code_sha256 = "d"}};
  const Staleness staleness = CompareWithTree(
      record, Tree({{"sm_90a", {{"wgmma", "w"}, {"wgmma@d128_bf16_causal", "other"}}}}));
  EXPECT_THAT(Names(staleness), ElementsAre("hopper:wgmma", "hopper:wgmma@d128_bf16_causal"));
  EXPECT_EQ(staleness.instances[0].state, State::kSame);
  EXPECT_EQ(staleness.instances[1].state, State::kChanged);
}

TEST(StalenessTest, AnInstanceThatWasSplitByMaskSinceIsComparedForEach) {
  MadeOf record = DatedRecord();
  record.kernels = {{.arm = "a", .config = "wgmma", .code_sha256 = "w"},
                    {.arm = "a", .config = "wgmma", .causal = true, .code_sha256 = "w"}};
  const Staleness staleness =
      CompareWithTree(record, Tree({{"sm_90a", {{"wgmma", "w"}, {"wgmma@causal", "new"}}}}));
  EXPECT_THAT(WhatChanged(staleness), HasSubstr("1 of its 2 instances changed: `a@causal`"));
}

TEST(StalenessTest, AProjectedProblemRunsAnInstanceOfItsOwn) {
  MadeOf record = DatedRecord();
  record.kernels = {{.arm = "a", .config = "mma_sync", .projected = true, .code_sha256 = "p"}};
  const ordered_json archs = {{"sm_90", {{"mma_sync", "p"}, {"mma_sync@projected", "new"}}}};
  EXPECT_TRUE(CompareWithTree(record, Tree(archs)).IsStale());
}

TEST(StalenessTest, LongListsAreCutAndCounted) {
  MadeOf record = DatedRecord();
  record.kernels.clear();
  ordered_json now = {{"same", "0"}};
  record.kernels.push_back({.arm = "same", .config = "same", .code_sha256 = "0"});
  for (int i = 0; i < 9; ++i) {
    const std::string name = "arm" + std::to_string(i);
    record.kernels.push_back({.arm = name, .config = name, .code_sha256 = "0"});
    now[name] = "1";
  }
  EXPECT_THAT(WhatChanged(CompareWithTree(record, Tree({{"sm_90", now}}))),
              HasSubstr("9 of its 10 instances changed: `arm0`, `arm1`, `arm2`, `arm3`, `arm4`, "
                        "`arm5`, `arm6`, `arm7` and 1 more"));
  record.kernels.erase(record.kernels.begin());
  EXPECT_EQ(WhatChanged(CompareWithTree(record, Tree({{"sm_90", now}}))),
            "the machine code of all its 9 instances changed");
}

TEST(StalenessTest, AnotherCompilerIsNamedBesideWhatChanged) {
  MadeOf record = DatedRecord();
  record.nvcc = "12.8.1";
  EXPECT_THAT(WhatChanged(CompareWithTree(record, Tree(kChanged))),
              HasSubstr(" (compiled by nvcc 12.8.1 then, by 13.0.88 now)"));
  EXPECT_FALSE(CompareWithTree(record, Tree(kSame)).IsStale());
}

TEST(StalenessTest, WithoutHashesTheSourcesDecide) {
  MadeOf record = DatedRecord();
  record.kernels[1].code_sha256 = "";
  Staleness staleness = CompareWithTree(record, Tree(kSame));
  EXPECT_THAT(staleness.instances, IsEmpty());
  EXPECT_TRUE(staleness.IsStale());
  EXPECT_TRUE(staleness.IsStaleFor({"ladder:kv_tiling"}));
  EXPECT_EQ(WhatChanged(staleness), "the kernels' sources changed");
  EXPECT_EQ(HarmlessChanges(staleness), "");
  record.registry_sha256 = "older";
  EXPECT_EQ(WhatChanged(CompareWithTree(record, Tree(kSame))),
            "the kernels' sources and the registry of toggles changed");
  record.registry_sha256 = "registry";
  EXPECT_FALSE(CompareWithTree(record, Tree(kSame, "then")).IsStale());
  record.kernels.clear();
  EXPECT_TRUE(CompareWithTree(record, Tree(kSame)).IsStale());
}

TEST(StalenessTest, TheSourcesDecideForAGpuThatTheTreesFileDoesNotSpeakOf) {
  MadeOf record = DatedRecord();
  record.compute_capability = "8.9";
  EXPECT_TRUE(CompareWithTree(record, Tree(kSame)).IsStale());
  EXPECT_FALSE(CompareWithTree(record, Tree(kSame, "then")).IsStale());
  EXPECT_TRUE(CompareWithTree(DatedRecord(), {.kernel_source_sha256 = "now"}).IsStale());
}

TEST(StalenessTest, AChangedRegistryAloneIsANote) {
  MadeOf record = DatedRecord();
  record.registry_sha256 = "older";
  const Staleness staleness = CompareWithTree(record, Tree(kSame, "then"));
  EXPECT_FALSE(staleness.IsStale());
  EXPECT_EQ(HarmlessChanges(staleness),
            "The registry of toggles changed after this record; claims, predictions and gates are "
            "today's.");
}

TEST(TreeCodeTest, TheExactArchitectureGoesBeforeItsSpecificTarget) {
  const TreeCode code =
      Tree({{"sm_90a", {{"x", "a"}, {"y", "b"}}}, {"sm_90", {{"x", "c"}}}}).tree_code;
  EXPECT_EQ(code.Find("9.0", {"x"})->second, "c");
  EXPECT_EQ(code.Find("9.0", {"none", "y"})->second, "b");
  EXPECT_EQ(code.Find("9.0", {"none"}), nullptr);
  EXPECT_EQ(code.Find("8.0", {"x"}), nullptr);
  EXPECT_TRUE(code.Covers("9.0"));
  EXPECT_FALSE(code.Covers("10.0"));
  EXPECT_EQ(code.nvcc(), "13.0.88");
}

TEST(TreeCodeTest, RefusesWhatIsNoSuchFile) {
  const ordered_json good = {
      {"schema_version", 1}, {"nvcc", "13"}, {"archs", {{"sm_90", {{"x", "a"}}}}}};
  ASSERT_TRUE(ParseTreeCode(good).ok());
  const std::vector<std::pair<std::string, ordered_json>> spoilt = {
      {"schema_version", 2},
      {"nvcc", nullptr},
      {"archs", ordered_json::object()},
      {"archs", {{"sm_90", ordered_json::object()}}},
      {"archs", {{"sm_90", {{"x", ""}}}}}};
  for (const auto& [key, value] : spoilt) {
    ordered_json json = good;
    json[key] = value;
    EXPECT_THAT(std::string(ParseTreeCode(json).status().message()), HasSubstr(key));
  }
  EXPECT_FALSE(ParseTreeCode(nullptr).ok());
}

}  // namespace
}  // namespace warpledger::report
