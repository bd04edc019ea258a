// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/summarize.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/subject.h"
#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "tests/ablations/judge/summarize_fixture.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

TEST(SummarizeTest, QuotesTheMicrobenchmarksThatItIsGiven) {
  SummarizeOptions options;
  options.micro = MicroRecord{
      .provenance = {{"run_id", "micro-1"},
                     {"started", "2026-11-01T00:00:00Z"},
                     {"gpu_uuid", "GPU-0"},
                     {"processes", 1},
                     {"n_samples", 8}},
      .entries = {
          {{"name", "a/b/c"}, {"unit", "us"}, {"value", 2}, {"percent_of_limit", nullptr}}}};
  const Json summary = ToJson(Summarize(ExampleRecord(), SdpaSubject(), options).value());
  EXPECT_EQ(summary["micro"], options.micro->entries);
  EXPECT_EQ(summary["provenance"]["micro"], options.micro->provenance);
  const Json without = SummaryOf(ExampleRecord());
  EXPECT_TRUE(without["micro"].empty());
  EXPECT_FALSE(without["provenance"].contains("micro"));
}

TEST(SummarizeTest, TheSameRecordGivesTheSameBytes) {
  EXPECT_EQ(DumpFile(SummaryOf(ExampleRecord())), DumpFile(SummaryOf(ExampleRecord())));
}

std::vector<std::string> Words(const char* text) { return absl::StrSplit(text, ' '); }

TEST(SummarizeTest, EveryPartHasTheFieldsOfTheSchema) {
  const Json summary = SummaryOf(ExampleRecord());
  for (const std::string& part :
       Words("schema_version run_id gpu design family provenance statistics shapes cells peers "
             "floors verdicts controls controls_summary micro")) {
    EXPECT_TRUE(summary.contains(part)) << part;
  }
  EXPECT_EQ(Keys(summary["cells"][0]),
            Words("variant config role toggle label shape correct max_err max_err_rule n_checks "
                  "n_samples n_processes p50_us ci_low_us ci_high_us p10_us p90_us tflops "
                  "speedup_over_first registers smem_bytes spill_bytes stack_bytes threads "
                  "ctas_per_sm code_sha256 sm_mhz_p50 reason"));
  EXPECT_EQ(Keys(summary["verdicts"][0]),
            Words("toggle design base candidate shape n_pairs n_processes estimand ratio ci_low "
                  "ci_high this_board_low this_board_high standard_error error_df "
                  "adjusted_confidence gate verdict reason mde_ratio within_process_sd "
                  "between_process_sd predicted_low predicted_high prediction_held change"));
  EXPECT_EQ(Keys(summary["controls"][0]),
            Words("kind shape candidate estimand ratio ci_low ci_high holds_one timing_verdict "
                  "verdict false_verdict mde_ratio within_process_sd between_process_sd"));
  EXPECT_EQ(Keys(summary["floors"][0]),
            Words("name shape n_samples p50_us ci_low_us ci_high_us p10_us p90_us"));
}

TEST(SummarizeTest, AnIntervalOfATimeIsSaidToBeAnEnvelope) {
  const std::string said = SummaryOf(ExampleRecord())["statistics"]["interval"];
  EXPECT_EQ(said.find("the envelope of a cluster bootstrap"), 0u) << said;
}

TEST(SummarizeTest, ACellHoldsTheMedianItsIntervalAndTheRate) {
  const Json cell = Find(SummaryOf(ExampleRecord())["cells"],
                         {{"variant", "ladder:kv_tiling"}, {"shape", "mission_b"}});
  // Drift runs from 1.00 to 1.07, so its median is 1.035.
  EXPECT_NEAR(cell["p50_us"].get<double>(), kTilingUs * 1.035, 0.5);
  EXPECT_LT(cell["ci_low_us"], cell["p50_us"]);
  EXPECT_GT(cell["ci_high_us"], cell["p50_us"]);
  EXPECT_EQ(cell["n_samples"], 24);
  EXPECT_EQ(cell["n_processes"], 3);
  EXPECT_EQ(cell["correct"], true);
  EXPECT_EQ(cell["max_err"], 3.1e-05);
  EXPECT_EQ(cell["max_err_rule"], 1.2e-04);
  // 4 * 8 * 512 * 512 * 64 operations.
  EXPECT_NEAR(cell["tflops"].get<double>(), 536870912.0 / cell["p50_us"].get<double>() * 1e-6,
              1e-4);
  EXPECT_EQ(cell["label"], "K/V tiling, serial reductions");
  EXPECT_EQ(cell["sm_mhz_p50"], 1980.0);
  EXPECT_FALSE(cell.contains("kv_bits"));
}

TEST(SummarizeTest, ACellSaysWhereKernelsReadKAndVIn8Bits) {
  for (const char* config : {"mma_sync+mma_kv_dtype=3", "wgmma+wgmma_fp8"}) {
    Record record = ExampleRecord();
    for (Arm& arm : record.run.arms) {
      if (arm.name == "ladder:kv_tiling") arm.config = config;
    }
    const Json cells = SummaryOf(record)["cells"];
    EXPECT_EQ(Find(cells, {{"variant", "ladder:kv_tiling"}, {"shape", "small"}})["kv_bits"], 8);
    EXPECT_FALSE(
        Find(cells, {{"variant", "ladder:wmma_qk"}, {"shape", "small"}}).contains("kv_bits"));
  }
}

TEST(SummarizeTest, APeerSaysWhereItMultipliesIn8Bits) {
  Record record = ExampleRecord();
  record.peers = std::vector<PeerInfo>{{"peer:cudnn", "torch", true, "", {}},
                                       {"peer:cudnn_fp8", "torch", true, "", {}}};
  const Json peers = SummaryOf(record)["peers"];
  EXPECT_FALSE(Find(peers, {{"name", "peer:cudnn"}, {"shape", "small"}}).contains("kv_bits"));
  EXPECT_EQ(Find(peers, {{"name", "peer:cudnn_fp8"}, {"shape", "small"}})["kv_bits"], 8);
}

TEST(SummarizeTest, TheDriversFiguresGoBeforeThoseOfPtxas) {
  const Json cells = SummaryOf(ExampleRecord())["cells"];
  const Json tiling = Find(cells, {{"variant", "ladder:kv_tiling"}});
  EXPECT_EQ(tiling["registers"], 42);
  EXPECT_EQ(tiling["smem_bytes"], 3048);
  EXPECT_EQ(tiling["spill_bytes"], 12);
  EXPECT_EQ(tiling["stack_bytes"], 16);
  EXPECT_EQ(tiling["ctas_per_sm"], 12);
  const Json scalar = Find(cells, {{"variant", "minimal_scalar"}});
  EXPECT_EQ(scalar["registers"], 30);
  EXPECT_EQ(scalar["smem_bytes"], 512);
  EXPECT_TRUE(scalar["threads"].is_null());
  const Json wmma = Find(cells, {{"variant", "ladder:wmma_qk"}});
  EXPECT_TRUE(wmma["registers"].is_null());
}

TEST(SummarizeTest, SpeedupOverTheFirstArmIsPaired) {
  const Json cells = SummaryOf(ExampleRecord())["cells"];
  const Json wmma = Find(cells, {{"variant", "ladder:wmma_qk"}})["speedup_over_first"];
  EXPECT_NEAR(wmma["ratio"].get<double>(), 1.28, 0.003);
  // The drift of 7% over the blocks cancels within pairs.
  EXPECT_GT(wmma["ci_low"].get<double>(), 1.27);
  EXPECT_LT(wmma["ci_high"].get<double>(), 1.29);
  EXPECT_EQ(Find(cells, {{"variant", "minimal_scalar"}})["speedup_over_first"]["ratio"], 1.0);
}

TEST(SummarizeTest, AWholeRecordMissesNothing) {
  const Json provenance = SummaryOf(ExampleRecord())["provenance"];
  EXPECT_EQ(provenance["processes_found"], 3);
  EXPECT_EQ(provenance["blocks_planned"], 3 * 2 * 8);
  EXPECT_EQ(provenance["blocks_missing"], 0);
  EXPECT_EQ(provenance["peer_blocks_planned"], 0);
  EXPECT_EQ(provenance["peer_blocks_missing"], 0);
}

TEST(SummarizeTest, AnUnfinishedRecordSaysWhatIsMissing) {
  Record record = ExampleRecord();
  std::erase_if(record.samples, [](const Sample& sample) {
    return sample.process == 2 || (sample.process == 1 && sample.shape == "small");
  });
  const Json provenance = SummaryOf(record)["provenance"];
  EXPECT_EQ(provenance["processes"], 3);
  EXPECT_EQ(provenance["processes_found"], 2);
  EXPECT_EQ(provenance["blocks_missing"], 16 + 8);
}

TEST(SummarizeTest, WhatWasPlannedAndNeverRunIsCountedAndNotWalkedThrough) {
  Record record = ExampleRecord();
  record.run.processes = std::numeric_limits<int>::max();
  const Json provenance = SummaryOf(record)["provenance"];
  const int64_t planned = int64_t{2} * 8 * std::numeric_limits<int>::max();
  EXPECT_EQ(provenance["blocks_planned"], planned);
  EXPECT_EQ(provenance["blocks_missing"], planned - 3 * 2 * 8);
}

TEST(SummarizeTest, BlocksOfPeersAreCountedApartAndOnlyWhereAPeerRan) {
  Record record = ExampleRecord();
  record.run.arms.push_back({"peer:cudnn", "", "peer", "", ""});
  Json provenance = SummaryOf(record)["provenance"];
  EXPECT_EQ(provenance["peer_blocks_missing"], 48) << "no word of the peers yet";
  record.peers = std::vector<PeerInfo>{
      {"peer:cudnn", "torch", true, "", {{"mission_b", true, 0, 1}, {"small", false, 2, 1}}}};
  provenance = SummaryOf(record)["provenance"];
  EXPECT_EQ(provenance["peer_blocks_planned"], 24) << "one that is wrong is not timed";
  EXPECT_EQ(provenance["peer_blocks_missing"], 24);
  for (int block = 0; block < 8; ++block) {
    record.samples.push_back(ExampleSample(0, "mission_b", block, 0, "peer:cudnn", 8));
  }
  provenance = SummaryOf(record)["provenance"];
  EXPECT_EQ(provenance["peer_blocks_missing"], 16);
  EXPECT_EQ(provenance["blocks_missing"], 0);
  EXPECT_EQ(provenance["processes_found"], 3);
}

TEST(SummarizeTest, ThrottlingIsUnknownWhereNoSampleSaysIt) {
  Record record = ExampleRecord();
  record.samples[0].throttle.reset();
  Json provenance = SummaryOf(record)["provenance"];
  EXPECT_EQ(provenance["throttled_samples"], 0);
  EXPECT_EQ(provenance["unknown_throttle_samples"], 1);
  for (Sample& sample : record.samples) sample.throttle.reset();
  provenance = SummaryOf(record)["provenance"];
  EXPECT_TRUE(provenance["throttled_samples"].is_null());
  EXPECT_EQ(provenance["unknown_throttle_samples"], 288);
}

TEST(SummarizeTest, ArmsThatTheKernelsCanNotHaveAreNotApplicableWithTheirReason) {
  Record record = ExampleRecord();
  EXPECT_FALSE(SummaryOf(record).contains("infeasible"));
  record.run.design = "stage2_plus";
  const Json cell = Find(SummaryOf(record)["infeasible"], {{"variant", "stage2:xor_swizzle"}});
  EXPECT_EQ(cell["verdict"], "NOT_APPLICABLE");
  EXPECT_THAT(cell["why"].get<std::string>(), HasSubstr("leading dimension"));
}

TEST(SummarizeTest, PeersAreListedOnEveryShapeWithTheReasonWhenTheyAreMissing) {
  Record record = ExampleRecord();
  record.peers = std::vector<PeerInfo>{
      {"peer:cudnn", "torch 2.11.0", true, "", {{"mission_b", true, 1e-5, 2e-5}}},
      {"peer:flash", "", false, "no PyTorch here", {}}};
  for (int process = 0; process < 3; ++process) {
    for (int block = 0; block < 4; ++block) {
      record.samples.push_back(
          ExampleSample(process, "mission_b", block, 0, "peer:cudnn", 8 + 0.01 * block));
    }
  }
  const Json peers = SummaryOf(record)["peers"];
  ASSERT_EQ(peers.size(), 4u);
  const Json cudnn = Find(peers, {{"name", "peer:cudnn"}, {"shape", "mission_b"}});
  EXPECT_EQ(cudnn["available"], true);
  EXPECT_EQ(cudnn["correct"], true);
  EXPECT_EQ(cudnn["p50_us"], 8.015);
  EXPECT_EQ(cudnn["n_processes"], 3);
  const Json untimed = Find(peers, {{"name", "peer:cudnn"}, {"shape", "small"}});
  EXPECT_EQ(untimed["available"], false);
  EXPECT_EQ(untimed["reason"], "not timed on this shape");
  EXPECT_TRUE(untimed["p50_us"].is_null());
  EXPECT_EQ(Find(peers, {{"name", "peer:flash"}})["reason"], "no PyTorch here");
}

TEST(SummarizeTest, FloorsStandApartFromTheCells) {
  const Json summary = SummaryOf(ExampleRecord());
  ASSERT_EQ(summary["floors"].size(), 2u);
  EXPECT_NEAR(summary["floors"][0]["p50_us"].get<double>(), 2.5 * 1.035, 0.02);
  for (const Json& cell : summary["cells"]) EXPECT_NE(cell["role"], "floor");
  EXPECT_EQ(summary["cells"].size(), 10u);
}

TEST(SummarizeTest, ProvenanceIsTheRunWithoutItsShapesAndArms) {
  const Json provenance = SummaryOf(ExampleRecord())["provenance"];
  EXPECT_EQ(provenance["git"]["sha"], "0123abcd");
  EXPECT_EQ(provenance["gpu"]["uuid"], "GPU-1");
  EXPECT_FALSE(provenance.contains("arms"));
  EXPECT_FALSE(provenance.contains("shapes"));
  EXPECT_EQ(provenance["n_samples"], 288);
  EXPECT_EQ(provenance["power_w_p50"], 310.5);
}

TEST(SummarizeTest, DerivedFiguresCarrySixSignificantDigits) {
  const Json summary = SummaryOf(ExampleRecord());
  for (const Json& cell : summary["cells"]) {
    for (const char* field : {"p50_us", "ci_low_us", "ci_high_us", "tflops"}) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.6g", cell[field].get<double>());
      EXPECT_EQ(cell[field].get<double>(), std::strtod(text, nullptr)) << field;
    }
  }
}

TEST(SummarizeTest, AToggleThatTheRegistryDoesNotKnowIsAnErrorThatNamesIt) {
  Record record = ExampleRecord();
  record.run.arms[1].toggle = "removed_toggle";
  EXPECT_THAT(Summarize(record, SdpaSubject()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'removed_toggle'")));
}

TEST(SummarizeTest, AStepOrLeaveOneOutArmOfNoToggleIsAnErrorThatNamesTheArm) {
  for (const char* role : {kRoleStep, kRoleWithout}) {
    Record record = ExampleRecord();
    record.run.arms[1].role = role;
    record.run.arms[1].toggle = "";
    EXPECT_THAT(Summarize(record, SdpaSubject()),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("'ladder:kv_tiling' is one of toggle ''")));
  }
}

TEST(SummarizeTest, ASampleOfAnUnknownArmIsAnErrorAndNotSkipped) {
  Record record = ExampleRecord();
  record.samples[0].arm = "ladder:unheard_of";
  EXPECT_THAT(std::string(Summarize(record, SdpaSubject()).status().message()),
              HasSubstr("ladder:unheard_of"));
}

TEST(SummarizeTest, ARecordWithoutSamplesIsNotJudged) {
  Record record;
  record.run = ExampleRun();
  EXPECT_THAT(Summarize(record, SdpaSubject()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("holds no sample")));
}

TEST(SummarizeTest, ARecordOfOneSampleHasCellsWithoutFigures) {
  Record record;
  record.run = ExampleRun();
  record.samples = {ExampleSample(0, "small", 0, 0, "floor:empty_kernel", 2.5)};
  record.samples[0].sm_mhz.reset();
  const Json summary = SummaryOf(record);
  EXPECT_EQ(summary["cells"].size(), 10u);
  EXPECT_TRUE(summary["cells"][0]["p50_us"].is_null());
  EXPECT_EQ(summary["verdicts"][0]["verdict"], "BROKEN");
  EXPECT_TRUE(summary["controls"].empty());
  EXPECT_TRUE(summary["provenance"]["sm_mhz_p50"].is_null());
  EXPECT_EQ(summary["provenance"]["blocks_missing"], 47);
}

}  // namespace
}  // namespace warpledger::ablations
