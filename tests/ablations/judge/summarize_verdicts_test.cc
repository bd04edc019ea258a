// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tests/ablations/judge/summarize_fixture.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Makes wmma_qk's log-ratio at mission_b `log_ratio`, and the three processes differ by `apart`.
void SpreadProcesses(Record& record, double log_ratio, double apart) {
  for (Sample& sample : record.samples) {
    if (sample.shape != "mission_b" || sample.arm != "ladder:wmma_qk") continue;
    sample.us =
        kTilingUs * (1 + 0.01 * sample.block) * std::exp(-log_ratio + apart * (sample.process - 1));
  }
}

TEST(SummarizeTest, AVerdictSaysWhatItsToggleDidToTheKernel) {
  Record record = ExampleRecord();
  record.launch->push_back({"kv_tiling+wmma_qk", 4096, 1000, 64, 128, 4});
  record.codegen->instances[1].opcodes = {{"FFMA", 64}, {"LDS.U.16", 10}, {"LDS.128", 2}};
  record.codegen->instances[2].opcodes = {{"FFMA", 40}, {"LDS.128", 8}, {"HMMA.16816.F32", 16}};
  const Json summary = SummaryOf(record);
  const Json change = VerdictOn(summary, "wmma_qk", "mission_b")["change"];
  EXPECT_EQ(change["registers"], Json({42, 64}));
  EXPECT_EQ(change["smem_bytes"], Json({3048, 5096}));
  EXPECT_EQ(change["spill_bytes"], Json({12, nullptr}));  // resources.json has but one of the two
  EXPECT_EQ(change["warps_per_sm"], Json({24, 16}));
  EXPECT_EQ(change["instructions"], Json({76, 64}));
  EXPECT_EQ(change["evidence"], Json({0, 16}));  // /HMMA/
  EXPECT_EQ(Keys(change["opcodes"]), (std::vector<std::string>{"FFMA", "HMMA", "LDS"}));
  EXPECT_EQ(change["opcodes"]["LDS"], Json({12, 8}));
  // The first step's base has no disassembly.
  const Json first = VerdictOn(summary, "kv_tiling", "mission_b")["change"];
  EXPECT_EQ(first["registers"], Json({30, 42}));
  EXPECT_EQ(first["warps_per_sm"], Json({nullptr, 24}));
  for (const char* field : {"instructions", "evidence", "opcodes"}) {
    EXPECT_TRUE(first[field].is_null()) << field;
  }
}

TEST(SummarizeTest, AStepIsJudgedAgainstItsBaseArm) {
  const Json summary = SummaryOf(ExampleRecord());
  const Json wmma = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(wmma["base"], "ladder:kv_tiling");
  EXPECT_EQ(wmma["verdict"], "ADOPT");
  EXPECT_NEAR(wmma["ratio"].get<double>(), 1.6, 0.004);
  EXPECT_EQ(wmma["n_pairs"], 24);
  EXPECT_EQ(wmma["n_processes"], 3);
  EXPECT_EQ(wmma["gate"], 1.10);
  EXPECT_EQ(VerdictOn(summary, "kv_tiling", "small")["verdict"], "REGRESSION");
}

TEST(SummarizeTest, AClaimOnAllShapesIsAFamily) {
  Record record = ExampleRecord();
  Json summary = SummaryOf(record);
  EXPECT_EQ(summary["statistics"]["family_size"], 4);
  for (const Json& verdict : summary["verdicts"]) EXPECT_EQ(verdict["adjusted_confidence"], 0.95);

  // Where one of two decides, both have its level; the other claim keeps its own.
  SpreadProcesses(record, 0.02, 0.05);
  summary = SummaryOf(record);
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "mission_b")["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "mission_b")["adjusted_confidence"], 0.975);
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "small")["adjusted_confidence"], 0.975);
  EXPECT_EQ(VerdictOn(summary, "kv_tiling", "small")["adjusted_confidence"], 0.95);
}

TEST(SummarizeTest, WhatIsBrokenNeitherDecidesNorLeavesTheFamily) {
  Record record = ExampleRecord();
  for (Check& check : record.checks) {
    if (check.arm == "ladder:wmma_qk" && check.shape == "mission_b") check.correct = false;
  }
  const Json summary = SummaryOf(record);
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "small")["adjusted_confidence"], 0.975);
  EXPECT_EQ(summary["statistics"]["family_size"], 4);
}

// Visits before a host that kept the GPU waiting in the first `starved` of an arm.
Record VisitsWith(int starved) {
  Record record = ExampleRecord();
  record.run.alone = AlonePlan{};
  for (Sample& sample : record.samples) {
    sample.window_s = 1;
    sample.idle_share = 0.0005;
    if (sample.shape != "mission_b" || sample.arm != "ladder:wmma_qk") continue;
    if (--starved < 0) continue;
    sample.idle_share = 0.3;
    sample.us *= 2;
  }
  return record;
}

TEST(SummarizeTest, AVisitThatWaitedForTheHostCountsForNothing) {
  const Json summary = SummaryOf(VisitsWith(8));
  const Json verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["n_pairs"], 16);
  EXPECT_NEAR(verdict["ratio"].get<double>(), 1.6, 0.004);
  EXPECT_EQ(verdict["verdict"], "ADOPT");
  const Json provenance = summary["provenance"];
  EXPECT_EQ(provenance["starved_visits"], 8);
  EXPECT_EQ(provenance["idle_share_max"], 0.3);
  EXPECT_EQ(provenance["idle_share_p50"], 0.0005);
  EXPECT_EQ(provenance["blocks_missing"], SummaryOf(VisitsWith(0))["provenance"]["blocks_missing"]);
  EXPECT_EQ(SummaryOf(VisitsWith(0))["provenance"]["starved_visits"], 0);
  EXPECT_FALSE(SummaryOf(ExampleRecord())["provenance"].contains("starved_visits"));
}

TEST(SummarizeTest, AVerdictIsInvalidWhereMostVisitsWaitedForTheHost) {
  const Json summary = SummaryOf(VisitsWith(16));
  const Json verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("the GPU waited for the host in 16 of 24 visits of ladder:wmma_qk, for up "
                        "to 30%"));
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "small")["verdict"], "ADOPT");
  // Not even one is left.
  EXPECT_EQ(VerdictOn(SummaryOf(VisitsWith(24)), "wmma_qk", "mission_b")["verdict"], "INVALID");
}

TEST(SummarizeTest, AVerdictHasAnIntervalOfItsBoardAndAWiderOneOfBoardsOfItsKind) {
  const Json verdict = VerdictOn(SummaryOf(ExampleRecord()), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["estimand"], "time");
  EXPECT_LT(verdict["ci_low"], verdict["this_board_low"]);
  EXPECT_LT(verdict["this_board_low"], verdict["ratio"]);
  EXPECT_LT(verdict["ratio"], verdict["this_board_high"]);
  EXPECT_LT(verdict["this_board_high"], verdict["ci_high"]);
  EXPECT_EQ(verdict["error_df"], 2);
  EXPECT_FALSE(verdict.contains("boards_to_decide"));
}

TEST(SummarizeTest, AnInconclusiveVerdictSaysHowManyBoardsOrProcessesWouldDecideIt) {
  Record record = ExampleRecord();
  SpreadProcesses(record, 0.02, 0.0045);
  Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INCONCLUSIVE") << verdict;
  EXPECT_EQ(verdict["boards_to_decide"], 2) << verdict;
  EXPECT_GT(verdict["processes_to_decide"], 3);
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("the same ratio on 2 boards, or in "));

  // Far less than processes differ by.
  SpreadProcesses(record, 0.01, 0.06);
  verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INCONCLUSIVE") << verdict;
  EXPECT_FALSE(verdict.contains("boards_to_decide"));
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("on not even 20 boards, or in not even 64 processes on one"));
}

TEST(SummarizeTest, AtThePowerLimitCyclesAreComparedWhereSamplesHaveClocks) {
  Record record = ExampleRecord();
  for (Sample& sample : record.samples) {
    if (sample.shape != "mission_b") continue;
    sample.throttle = 0x4;
    sample.sm_mhz = sample.arm == "ladder:wmma_qk" ? 1650.5 : 1500.5;
  }
  Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["estimand"], "cycles");
  EXPECT_NEAR(verdict["ratio"].get<double>(), 1.6 * 1500.5 / 1650.5, 0.004);
  EXPECT_NEAR(verdict["time_ratio"].get<double>(), 1.6, 0.004);
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("in SM cycles, at equal clocks (in time 1.6"));
  EXPECT_EQ(VerdictOn(SummaryOf(record), "wmma_qk", "small")["estimand"], "time");

  // NVML's clocks are whole MHz, and not of the sample.
  for (Sample& sample : record.samples) sample.sm_mhz = std::round(*sample.sm_mhz);
  verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["estimand"], "time");
  EXPECT_FALSE(verdict.contains("time_ratio"));
}

TEST(SummarizeTest, APredictionIsTestedOnItsOwnShapeWithAWarmL2Only) {
  Record record = ExampleRecord();
  Json summary = SummaryOf(record);
  const Json here = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(here["predicted_low"], 1.3);
  EXPECT_EQ(here["predicted_high"], 2.0);
  EXPECT_EQ(here["prediction_held"], true);
  const Json elsewhere = VerdictOn(summary, "wmma_qk", "small");
  EXPECT_TRUE(elsewhere["prediction_held"].is_null());
  EXPECT_TRUE(elsewhere["predicted_low"].is_null());

  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) { s.us *= 1.5; });
  EXPECT_EQ(VerdictOn(SummaryOf(record), "wmma_qk", "mission_b")["prediction_held"], false);

  record.run.cache = kCacheCold;
  summary = SummaryOf(record);
  EXPECT_TRUE(VerdictOn(summary, "wmma_qk", "mission_b")["prediction_held"].is_null());
  EXPECT_TRUE(VerdictOn(summary, "wmma_qk", "mission_b")["predicted_low"].is_null());
}

TEST(SummarizeTest, AFailedCheckBreaksTheVerdictsOnThatShapeAlone) {
  Record record = ExampleRecord();
  for (Check& check : record.checks) {
    if (check.arm != "ladder:wmma_qk" || check.shape != "mission_b") continue;
    check.correct = false;
    check.max_err = std::nan("");
    check.reason = "row 3 is NaN";
  }
  const Json summary = SummaryOf(record);
  const Json verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "BROKEN");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("row 3 is NaN"));
  // Timed for the record, and no evidence for the prediction.
  EXPECT_TRUE(verdict["ratio"].is_number());
  EXPECT_TRUE(verdict["prediction_held"].is_null());
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "small")["verdict"], "ADOPT");

  const Json cell = Find(summary["cells"], {{"variant", "ladder:wmma_qk"}, {"shape", "mission_b"}});
  EXPECT_EQ(cell["correct"], false);
  EXPECT_TRUE(cell["max_err"].is_null());
  EXPECT_TRUE(cell["p50_us"].is_number());
  EXPECT_TRUE(cell["speedup_over_first"].is_null());
}

TEST(SummarizeTest, ABrokenBaseBreaksTheStepOnTopOfIt) {
  Record record = ExampleRecord();
  for (Check& check : record.checks) {
    if (check.arm == "ladder:kv_tiling") check.correct = false;
  }
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "BROKEN");
}

TEST(SummarizeTest, OneFailureAmongManyChecksIsAFailure) {
  Record record = ExampleRecord();
  Check failed = ExampleCheck("ladder:wmma_qk", "mission_b");
  failed.seed = 77;
  failed.correct = false;
  record.checks.push_back(failed);
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "BROKEN");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("seed 77"));
}

TEST(SummarizeTest, WhatWasNeverCheckedIsNeverRanked) {
  Record record = ExampleRecord();
  std::erase_if(record.checks, [](const Check& check) {
    return check.arm == "ladder:wmma_qk" && check.shape == "mission_b";
  });
  const Json summary = SummaryOf(record);
  const Json verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "BROKEN");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("never checked"));
  const Json cell = Find(summary["cells"], {{"variant", "ladder:wmma_qk"}, {"shape", "mission_b"}});
  EXPECT_TRUE(cell["correct"].is_null());
  EXPECT_TRUE(cell["speedup_over_first"].is_null());
}

TEST(SummarizeTest, ARecordThatWasMadeInAWayThatWasWrongIsInvalidByItsCause) {
  Record record = ExampleRecord();
  record.run.protocol_sha256 = "ac06247502fffe91d23514f97f7cd33a66fade35fd22349322755170f780a9d9";
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), VerdictOf(ExampleRecord(), "wmma_qk"))
      << "no arm sets a part of L2 aside";
  record.run.arms.push_back(
      {"ladder:l2_persisting_kv", "kv_tiling+l2_persisting_kv", kRoleCell, "", ""});
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("decisions/0017"));
  record.run.protocol_sha256 = "another";
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), VerdictOf(ExampleRecord(), "wmma_qk"));
}

TEST(SummarizeTest, AToggleThatChangesNoCodeIsInvalidHoweverFastItLooks) {
  Record record = ExampleRecord();
  record.codegen->instances[2].code_sha256 = "hash1";
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("reaches no code"));
}

// The same instance in both arms, launched another way.
Record WithLaunchSideToggle() {
  Record record = ExampleRecord();
  for (Arm& arm : record.run.arms) {
    if (arm.name == "ladder:wmma_qk") {
      arm.toggle = "stream_launch";
      arm.config = "kv_tiling+stream_launch";
    }
  }
  for (const char* shape : {"small", "mission_b"}) {
    record.calls.push_back({"ladder:kv_tiling", shape, {"by graph", "kernel sdpa"}});
    record.calls.push_back({"ladder:wmma_qk", shape, {"by stream", "kernel sdpa"}});
  }
  return record;
}

TEST(SummarizeTest, AToggleOfTheLaunchIsHeldToWhatWasLaunchedAndNotToItsCode) {
  Record record = WithLaunchSideToggle();
  const Json cell_code = VerdictOn(SummaryOf(record), "stream_launch", "mission_b");
  EXPECT_EQ(cell_code["verdict"], "ADOPT") << cell_code["reason"];

  record.calls[3].lines[0] = "by graph";  // it asked for it and did not get it
  Json verdict = VerdictOn(SummaryOf(record), "stream_launch", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("launch the same"));
  EXPECT_EQ(VerdictOn(SummaryOf(record), "stream_launch", "small")["verdict"],
            VerdictOn(SummaryOf(WithLaunchSideToggle()), "stream_launch", "small")["verdict"]);

  record.calls.clear();
  verdict = VerdictOn(SummaryOf(record), "stream_launch", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("no evidence of what was launched"));
}

TEST(SummarizeTest, WithoutMachineCodeEvidenceAVerdictIsInvalid) {
  Record record = ExampleRecord();
  record.codegen.reset();
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "INVALID");
  record = ExampleRecord();
  record.run.gpu.compute_capability = "8.9";
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "INVALID") << "hashes of another arch are no evidence";
}

TEST(SummarizeTest, ThrottledPairsMakeAVerdictInvalidAndIdleOnesDoNot) {
  Record record = ExampleRecord();
  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) { s.throttle = 0x1; });
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "ADOPT");
  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) { s.throttle = 0x20; });
  const Json summary = SummaryOf(record);
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "mission_b")["verdict"], "INVALID");
  EXPECT_EQ(summary["provenance"]["throttled_samples"], 24);
}

TEST(SummarizeTest, APowerLimitOfBothArmsMarksAVerdictAndThatOfOneArmMakesItInvalid) {
  Record record = ExampleRecord();
  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) {
    s.throttle = 0x4;
    s.sm_mhz = 1500;
  });
  Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("held one arm more"));

  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) { s.sm_mhz = 1980; });
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "ADOPT") << "at one clock the limit did nothing to it";

  ForSamples(record, "ladder:kv_tiling", "mission_b", [](Sample& s) { s.throttle = 0x4 | 0x1; });
  const Json summary = SummaryOf(record);
  verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "ADOPT");
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("; power-capped in 24 (base) and 24 (candidate) of 24 pairs, at "));
  EXPECT_EQ(verdict["power_capped"]["base_pairs"], 24);
  EXPECT_EQ(verdict["power_capped"]["candidate_pairs"], 24);
  EXPECT_TRUE(verdict["power_capped"]["base_sm_mhz"].is_number());
  EXPECT_EQ(summary["provenance"]["throttled_samples"], 48) << "flagged all the same";
  // A verdict that the limit does not touch has no such field.
  EXPECT_FALSE(VerdictOn(summary, "wmma_qk", "small").contains("power_capped"));
}

TEST(SummarizeTest, AVerdictNamesClocksThatItsKernelsSetApart) {
  Record record = ExampleRecord();
  ForSamples(record, "ladder:wmma_qk", "mission_b", [](Sample& s) { s.sm_mhz = 1500; });
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "ADOPT");
  EXPECT_THAT(verdict["reason"].get<std::string>(),
              HasSubstr("; at 1980 MHz (base) and 1500 MHz (candidate)"));
  EXPECT_THAT(VerdictOn(SummaryOf(record), "wmma_qk", "small")["reason"].get<std::string>(),
              Not(HasSubstr("MHz")));
}

TEST(SummarizeTest, AStepWithoutSamplesIsInconclusive) {
  Record record = ExampleRecord();
  std::erase_if(record.samples, [](const Sample& sample) {
    return sample.arm == "ladder:wmma_qk" && sample.shape == "mission_b";
  });
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(verdict["n_pairs"], 0);
  EXPECT_TRUE(verdict["ratio"].is_null());
}

TEST(SummarizeTest, AShapeThatTheKernelsAreNotBuiltForIsNotApplicable) {
  Record record = ExampleRecord();
  record.run.shapes[1].fields["head_dim"] = 128;
  const Json summary = SummaryOf(record);
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "mission_b")["verdict"], "NOT_APPLICABLE");
  EXPECT_EQ(summary["statistics"]["family_size"], 2);
}

TEST(SummarizeTest, AShapeOfADtypeThatTheKernelsAreNotBuiltForIsNotApplicable) {
  Record record = ExampleRecord();
  record.run.shapes[1].fields["dtype"] = "bf16";
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "NOT_APPLICABLE");
  EXPECT_EQ(verdict["reason"], "no kernel of this design is compiled for head_dim 64 in bf16");
}

TEST(SummarizeTest, WhereBothSidesRunOneKernelAToggleHasNothingToDo) {
  Record record = ExampleRecord();
  Arm& arm = *absl::c_find_if(record.run.arms, [](const Arm& a) { return a.toggle == "wmma_qk"; });
  arm.config = "kv_tiling+wgmma_own_tiles";
  arm.toggle = "wgmma_own_tiles";
  const Json summary = SummaryOf(record);
  const Json verdict = VerdictOn(summary, "wgmma_own_tiles", "mission_b");
  EXPECT_EQ(verdict["verdict"], "NOT_APPLICABLE");
  EXPECT_EQ(verdict["reason"],
            "it has nothing to do on this shape, where both sides run one kernel");
  // Under the causal mask there is something.
  record.run.shapes[1].fields["causal"] = true;
  EXPECT_NE(VerdictOn(SummaryOf(record), "wgmma_own_tiles", "mission_b")["verdict"],
            "NOT_APPLICABLE");
}

TEST(SummarizeTest, ControlsSayWhatTheirTimesAloneWouldHaveSaid) {
  const Json summary = SummaryOf(ExampleRecord());
  ASSERT_EQ(summary["controls"].size(), 4u);
  const Json aa = Find(summary["controls"], {{"kind", "aa"}, {"shape", "mission_b"}});
  EXPECT_EQ(aa["timing_verdict"], "NEUTRAL");
  EXPECT_EQ(aa["verdict"], "NEUTRAL");
  const Json null = Find(summary["controls"], {{"kind", "null"}, {"shape", "mission_b"}});
  EXPECT_EQ(null["timing_verdict"], "NEUTRAL");
  EXPECT_EQ(null["verdict"], "INVALID");
  EXPECT_EQ(null["false_verdict"], false);
  EXPECT_EQ(summary["controls_summary"]["trials"], 4);
  EXPECT_EQ(summary["controls_summary"]["false_verdicts"], 0);
}

TEST(SummarizeTest, AControlWhoseTimesDifferIsAFalseVerdict) {
  Record record = ExampleRecord();
  ForSamples(record, "control:null_toggle", "small", [](Sample& s) { s.us *= 1.1; });
  const Json summary = SummaryOf(record);
  const Json null = Find(summary["controls"], {{"kind", "null"}, {"shape", "small"}});
  EXPECT_EQ(null["timing_verdict"], "REGRESSION");
  EXPECT_EQ(null["verdict"], "INVALID");
  EXPECT_EQ(null["false_verdict"], true);
  EXPECT_EQ(summary["controls_summary"]["false_verdicts"], 1);
  EXPECT_EQ(null["holds_one"], false);
}

// NEUTRAL does not say that an interval holds 1: a control half a percent off is
// no false verdict, and still more than the intervals promise.
TEST(SummarizeTest, AControlSaysWhetherItsIntervalHoldsOne) {
  Record record = ExampleRecord();
  for (const char* control : {"control:aa", "control:null_toggle"}) {
    for (const char* shape : {"small", "mission_b"}) {
      const std::string base = "ladder:wmma_qk";
      for (Sample& sample : record.samples) {
        if (sample.arm != control || sample.shape != shape) continue;
        for (const Sample& other : record.samples) {
          if (other.arm == base && other.shape == shape && other.process == sample.process &&
              other.block == sample.block) {
            // Around 1 in every process, the processes apart a little; or always 0.5% above it.
            const bool off = std::string(shape) == "small" && control[8] == 'a';
            const double apart = 0.0005 * (sample.process - 1);
            sample.us = other.us * (off ? 1.005 : (sample.block % 2 == 0 ? 1.001 : 0.999) + apart);
          }
        }
      }
    }
  }
  const Json summary = SummaryOf(record);
  const Json off = Find(summary["controls"], {{"kind", "aa"}, {"shape", "small"}});
  EXPECT_EQ(off["holds_one"], false);
  EXPECT_EQ(off["false_verdict"], false);
  const Json on = Find(summary["controls"], {{"kind", "aa"}, {"shape", "mission_b"}});
  EXPECT_EQ(on["holds_one"], true);
  EXPECT_EQ(summary["controls_summary"]["intervals_holding_one"], 3);
}

TEST(SummarizeTest, AClockThatFallsDuringAProcessMakesItsVerdictsInvalid) {
  Record record = ExampleRecord();
  for (Sample& sample : record.samples) {
    if (sample.process == 1 && sample.shape == "mission_b" && sample.block >= 5) {
      sample.sm_mhz = 1400;
    }
  }
  const Json summary = SummaryOf(record);
  const Json verdict = VerdictOn(summary, "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("1980 MHz and ended at 1400 MHz"));
  EXPECT_EQ(VerdictOn(summary, "wmma_qk", "small")["verdict"], "ADOPT");
}

TEST(SummarizeTest, AToggleWithoutItsInstructionsIsInvalidThoughTheCodeDiffers) {
  Record record = ExampleRecord();
  record.codegen->instances[1].opcodes = {{"FFMA", 64}, {"STS.U16", 4}};
  record.codegen->instances[2].opcodes = {{"FFMA", 63}, {"STS.U16", 4}};
  const Json verdict = VerdictOn(SummaryOf(record), "wmma_qk", "mission_b");
  EXPECT_EQ(verdict["verdict"], "INVALID");
  EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("/HMMA/"));
  record.codegen->instances[2].opcodes["HMMA.16816.F32"] = 16;
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "ADOPT");
}

// What tells a toggle on from off, more of its instructions, need not tell one of its
// on-levels from another.
TEST(SummarizeTest, BetweenTwoLevelsOfAToggleOtherCodeIsEnough) {
  Record record = ExampleRecord();
  for (Arm& arm : record.run.arms) {
    if (arm.name == "ladder:kv_tiling") arm.config = "kv_tiling+wmma_qk=2";
  }
  record.codegen->instances[1].variant = "kv_tiling+wmma_qk=2";
  record.codegen->instances[1].opcodes = {{"HMMA.16816.F32", 16}};
  record.codegen->instances[2].opcodes = {{"HMMA.16816.F32", 16}, {"FFMA", 1}};
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "ADOPT");
  record.codegen->instances[2].code_sha256 = record.codegen->instances[1].code_sha256;
  EXPECT_EQ(VerdictOf(record, "wmma_qk"), "INVALID");
}

// Both steps add copies ahead of use to the first arm: two stages in one, three in the other.
Record TwoAndThreeStages() {
  Record record = ExampleRecord();
  const std::string two = "kv_tiling+vector_loads+cp_async_stages";
  const std::string three = two + "=3";
  for (Arm& arm : record.run.arms) {
    if (arm.role != kRoleStep) continue;
    arm.config = arm.name == "ladder:kv_tiling" ? two : three;
    arm.toggle = "cp_async_stages";
    arm.base = "minimal_scalar";
  }
  record.codegen->instances[1].variant = two;
  record.codegen->instances[2].variant = three;
  return record;
}

TEST(SummarizeTest, TwoArmsThatDifferByADeclaredClaimAreComparedThoughNoStepLeadsBetweenThem) {
  const Json summary = SummaryOf(TwoAndThreeStages());
  ASSERT_EQ(summary["comparisons"].size(), 2u);  // a claim, on two shapes
  const Json third = Find(summary["comparisons"], {{"shape", "mission_b"}});
  EXPECT_EQ(third["toggle"], "cp_async_stages");
  EXPECT_EQ(third["base"], "ladder:kv_tiling");
  EXPECT_EQ(third["candidate"], "ladder:wmma_qk");
  EXPECT_NEAR(third["ratio"].get<double>(), kTilingUs / kWmmaUs, 0.004);
  EXPECT_EQ(third["n_pairs"], 24);
  EXPECT_EQ(third["verdict"], "ADOPT");
  // Of claims.def, not of the toggle's row, which speaks of two stages over none.
  EXPECT_EQ(third["predicted_low"], 0.98);
  EXPECT_EQ(third["predicted_high"], 1.03);
  EXPECT_EQ(third["prediction_held"], false);
  EXPECT_TRUE(Find(summary["comparisons"], {{"shape", "small"}})["predicted_low"].is_null());
}

TEST(SummarizeTest, AComparisonOfArmsLeavesTheVerdictsAsTheyAre) {
  Record record = TwoAndThreeStages();
  const Json with = SummaryOf(record);
  for (Arm& arm : record.run.arms) {
    // Then the two differ by more than the claim.
    if (arm.name == "ladder:wmma_qk") arm.config += "+wmma_pv";
  }
  record.codegen->instances[2].variant += "+wmma_pv";
  const Json without = SummaryOf(record);
  EXPECT_FALSE(without.contains("comparisons"));
  EXPECT_EQ(with["verdicts"], without["verdicts"]);
  EXPECT_EQ(with["statistics"], without["statistics"]);
}

TEST(SummarizeTest, SaysHowManyChecksOfAClaimOnEqualBitsHadTheSameErrors) {
  Record record = TwoAndThreeStages();
  Json verdict = Find(SummaryOf(record)["comparisons"], {{"shape", "mission_b"}});
  const int64_t checks = verdict["same_errors"]["checks"];
  EXPECT_GT(checks, 0);
  EXPECT_EQ(verdict["same_errors"]["same"], checks);
  for (Check& check : record.checks) {
    if (check.arm != "ladder:wmma_qk" || check.shape != "mission_b") continue;
    check.mean_err = std::nextafter(check.mean_err, 1);
    break;
  }
  verdict = Find(SummaryOf(record)["comparisons"], {{"shape", "mission_b"}});
  EXPECT_EQ(verdict["same_errors"]["same"], checks - 1);
  // A variant against its own timed graph: no check against the reference.
  for (const char* arm : {"ladder:kv_tiling", "ladder:wmma_qk"}) {
    Check timed = ExampleCheck(arm, "mission_b");
    timed.inputs = "timed_graph";
    timed.max_err = timed.mean_err = timed.lse_err = 0;
    record.checks.push_back(timed);
  }
  EXPECT_EQ(Find(SummaryOf(record)["comparisons"], {{"shape", "mission_b"}})["same_errors"],
            verdict["same_errors"]);
  // Of a claim that may change the last bits nothing is said.
  EXPECT_FALSE(VerdictOn(SummaryOf(ExampleRecord()), "wmma_qk", "small").contains("same_errors"));
}

}  // namespace
}  // namespace warpledger::ablations
