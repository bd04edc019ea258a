// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/ratchet.h"

#include <gmock/gmock.h>

#include "ablations/base/files.h"
#include "ablations/record/store.h"
#include "tests/ablations/judge/compare/compared_records.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BuildFacts Facts() {
  BuildFacts facts;
  facts.name = "facts";
  facts.resources = {{"kv_tiling", "sm_80", 112, 16, 0, 0, 0},
                     {"kv_tiling", "sm_90", 116, 16, 0, 8, 4}};
  facts.dynamic_smem_bytes = {{"kv_tiling", 14016}};
  facts.codegen = Codegen{
      "", {{"kv_tiling", "sm_80", "hash80", "p", {}}, {"kv_tiling", "sm_90", "hash90", "p", {}}}};
  facts.nvcc = "13.0.88";
  facts.cuda_flags = "-O3";
  return facts;
}

TEST(RatchetTest, TheSameBuildHolds) {
  const Ratchet ratchet = RunRatchet(Facts(), Facts(), {});
  EXPECT_EQ(ratchet.exit, 0);
  EXPECT_EQ(ratchet.compared, 2);
  EXPECT_EQ(ratchet.code_compared, 2);
  EXPECT_THAT(ratchet.grew, IsEmpty());
  EXPECT_THAT(ratchet.code_changed, IsEmpty());
  EXPECT_EQ(ratchet.toolchain_note, "");
}

struct Growth {
  const char* resource;
  void (*grow)(BuildFacts&);
};

TEST(RatchetTest, GrowthOfEachResourceIsFoundAndShrinkingIsNot) {
  for (const Growth growth :
       {Growth{"registers", [](BuildFacts& f) { ++f.resources[1].registers; }},
        Growth{"spill_bytes", [](BuildFacts& f) { f.resources[1].spill_load_bytes += 4; }},
        Growth{"spill_bytes", [](BuildFacts& f) { f.resources[1].spill_store_bytes += 4; }},
        Growth{"stack_bytes", [](BuildFacts& f) { f.resources[1].stack_bytes += 8; }},
        Growth{"smem_bytes", [](BuildFacts& f) { f.resources[1].static_smem_bytes += 16; }}}) {
    BuildFacts grown = Facts();
    growth.grow(grown);
    const Ratchet ratchet = RunRatchet(Facts(), grown, {});
    EXPECT_EQ(ratchet.exit, 1) << growth.resource;
    ASSERT_EQ(ratchet.grew.size(), 1u) << growth.resource;
    EXPECT_EQ(ratchet.grew[0].resource, growth.resource);
    EXPECT_EQ(ratchet.grew[0].arch, "sm_90");
    const Ratchet shrinking = RunRatchet(grown, Facts(), {});
    EXPECT_EQ(shrinking.exit, 0) << growth.resource;
    EXPECT_EQ(shrinking.shrank.size(), 1u) << growth.resource;
  }
}

TEST(RatchetTest, DynamicSharedMemoryCountsWhereBothSidesKnowIt) {
  BuildFacts grown = Facts();
  grown.dynamic_smem_bytes["kv_tiling"] += 16;
  Ratchet ratchet = RunRatchet(Facts(), grown, {});
  EXPECT_EQ(ratchet.exit, 1);
  ASSERT_EQ(ratchet.grew.size(), 2u);
  EXPECT_EQ(ratchet.grew[0].before, 16 + 14016);
  BuildFacts unknown = Facts();
  unknown.dynamic_smem_bytes.clear();
  ratchet = RunRatchet(unknown, grown, {});
  EXPECT_EQ(ratchet.exit, 0);
}

TEST(RatchetTest, ChangedMachineCodeIsListedAndHolds) {
  BuildFacts changed = Facts();
  changed.codegen->instances[0].code_sha256 = "other";
  const Ratchet ratchet = RunRatchet(Facts(), changed, {});
  EXPECT_EQ(ratchet.exit, 0);
  EXPECT_THAT(ratchet.code_changed, ElementsAre("kv_tiling on sm_80"));
  EXPECT_THAT(RatchetText(ratchet), HasSubstr("the machine code of 1 of 2 changed"));
}

TEST(RatchetTest, AnArchitectureThatIsNotBuiltIsLeftOutByName) {
  BuildFacts one_arch = Facts();
  one_arch.resources.erase(one_arch.resources.begin());
  const Ratchet ratchet = RunRatchet(Facts(), one_arch, {});
  EXPECT_EQ(ratchet.exit, 0);
  EXPECT_EQ(ratchet.compared, 1);
  EXPECT_THAT(ratchet.archs_left_out, ElementsAre("sm_80"));
}

TEST(RatchetTest, AnInstanceThatIsGoneCannotBeCompared) {
  BuildFacts baseline = Facts();
  baseline.resources.push_back({"other", "sm_90", 10, 0, 0, 0, 0});
  BuildFacts renamed = baseline;
  renamed.resources[0].variant = "tiling";
  renamed.resources[1].variant = "tiling";
  const Ratchet ratchet = RunRatchet(baseline, renamed, {});
  EXPECT_EQ(ratchet.exit, 3);
  EXPECT_EQ(ratchet.compared, 1);
  EXPECT_THAT(ratchet.gone, ElementsAre("kv_tiling on sm_80", "kv_tiling on sm_90"));
  EXPECT_THAT(ratchet.instances_left_out, IsEmpty());
  EXPECT_THAT(ratchet.added, ElementsAre("tiling on sm_80", "tiling on sm_90"));
}

TEST(RatchetTest, AnInstanceBuiltForOtherArchitecturesIsLeftOutByName) {
  BuildFacts of_all = Facts();
  of_all.resources.push_back({"mma_sync", "sm_80", 100, 0, 0, 0, 0});
  of_all.resources.push_back({"mma_sync", "sm_90", 100, 0, 0, 0, 0});
  BuildFacts of_ladders = of_all;
  of_ladders.resources.erase(of_ladders.resources.begin() + 2);
  const Ratchet ratchet = RunRatchet(of_all, of_ladders, {});
  EXPECT_EQ(ratchet.exit, 0);
  EXPECT_EQ(ratchet.compared, 3);
  EXPECT_THAT(ratchet.instances_left_out, ElementsAre("mma_sync on sm_80"));
  EXPECT_THAT(RatchetText(ratchet), HasSubstr("1 instances, mma_sync on sm_80 among them"));
}

TEST(RatchetTest, NothingToCompareIsNoPass) {
  EXPECT_EQ(RunRatchet(BuildFacts{}, Facts(), {}).exit, 3);
  EXPECT_EQ(RunRatchet(Facts(), BuildFacts{}, {}).exit, 3);
}

TEST(RatchetTest, AnotherCompilerIsNoted) {
  BuildFacts other = Facts();
  other.nvcc = "13.1.0";
  EXPECT_THAT(RunRatchet(Facts(), other, {}).toolchain_note, HasSubstr("nvcc 13.0.88"));
  other = Facts();
  other.cuda_flags = "-G";
  EXPECT_THAT(RunRatchet(Facts(), other, {}).toolchain_note, HasSubstr("'-G'"));
  other.nvcc = "";
  EXPECT_THAT(RunRatchet(Facts(), other, {}).toolchain_note, HasSubstr("unknown"));
}

TEST(RatchetTest, AWaiverLetsGrowthThroughUpToItsLimit) {
  BuildFacts grown = Facts();
  grown.resources[0].registers = 120;
  grown.resources[1].registers = 120;
  const auto exit_with = [&](const char* text) {
    const std::vector<Waiver> waivers = ParseWaivers(text).value();
    return RunRatchet(Facts(), grown, waivers);
  };
  Ratchet ratchet = exit_with("# why\n\nkv_tiling * registers 120 3% faster on an H200\n");
  EXPECT_EQ(ratchet.exit, 0);
  ASSERT_EQ(ratchet.grew.size(), 2u);
  EXPECT_EQ(ratchet.grew[0].waived, "3% faster on an H200");
  EXPECT_EQ(exit_with("kv_tiling * registers 119 too low\n").exit, 1);
  EXPECT_EQ(exit_with("kv_tiling sm_90 registers 120 one arch\n").exit, 1);
  EXPECT_EQ(exit_with("kv_tiling * stack_bytes 120 another resource\n").exit, 1);
  ratchet = exit_with("kv_tiling * registers 120 ok\nkv_tiling * stack_bytes 9 idle\n");
  EXPECT_THAT(ratchet.idle_waivers, ElementsAre("kv_tiling * stack_bytes"));
}

TEST(RatchetTest, AWaiverWithoutAReasonOrWithAnUnknownResourceIsRefused) {
  for (const char* text : {"kv_tiling * registers 120\n", "kv_tiling * registers many because\n",
                           "kv_tiling * register 120 because\n"}) {
    const absl::StatusOr<std::vector<Waiver>> waivers = ParseWaivers(text);
    EXPECT_TRUE(absl::IsInvalidArgument(waivers.status())) << text;
    EXPECT_THAT(std::string(waivers.status().message()), HasSubstr("line 1")) << text;
  }
}

TEST(RatchetTest, TheBaselineIsARecordOrAResourcesFile) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  const Record example = ExampleRecord(1);
  std::unique_ptr<RecordWriter> writer = RecordWriter::Create(dir.path(), example.run).value();
  EXPECT_TRUE(absl::IsNotFound(LoadBaselineFacts(dir.path()).status()));
  const std::string file = dir.path() + "/" + kResourcesFile;
  ASSERT_TRUE(WriteFileAtomically(file, DumpFile(ToJson(ResourcesFile{*example.resources}))).ok());
  ASSERT_TRUE(
      WriteFileAtomically(dir.path() + "/" + kLaunchFile,
                          DumpFile(ToJson(LaunchFile{{{"kv_tiling", 2048, 0, 40, 64, 12}}})))
          .ok());

  const BuildFacts record = LoadBaselineFacts(dir.path()).value();
  EXPECT_EQ(record.name, example.run.run_id);
  EXPECT_EQ(record.nvcc, "13.0.0");
  EXPECT_EQ(record.resources.size(), 3u);
  EXPECT_EQ(record.dynamic_smem_bytes.at("kv_tiling"), 2048);

  const BuildFacts alone = LoadBaselineFacts(file).value();
  EXPECT_EQ(alone.resources.size(), 3u);
  EXPECT_EQ(alone.nvcc, "");
  EXPECT_EQ(alone.dynamic_smem_bytes.size(), 0u);

  std::vector<InstanceResources> twice = *example.resources;
  twice.push_back(twice.front());
  ++twice.back().registers;
  ASSERT_TRUE(WriteFileAtomically(file, DumpFile(ToJson(ResourcesFile{twice}))).ok());
  for (const std::string& path : {dir.path(), file}) {
    EXPECT_THAT(std::string(LoadBaselineFacts(path).status().message()),
                HasSubstr("resources.json: minimal_scalar on sm_90 stands twice"));
  }

  ASSERT_TRUE(WriteFileAtomically(file, "{}").ok());
  EXPECT_FALSE(LoadBaselineFacts(file).ok());
  EXPECT_TRUE(absl::IsNotFound(LoadBaselineFacts(dir.path() + "/none").status()));
}

}  // namespace
}  // namespace warpledger::ablations
