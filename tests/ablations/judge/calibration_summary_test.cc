// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "ablations/judge/summarize.h"
#include "ablations/stats/random.h"
#include "reports/pages/pages.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/reports/from_json.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr int kGroups = 3;
constexpr int kBlocks = 8;

// Three groups of five processes: two A/A pairs, one arm that is 2% slower and one
// that is 0.3% slower, with 0.1% of uniform noise each.
CalibrationRecord Example() {
  CalibrationRecord record;
  CalibrationHeader& header = record.header;
  header.plan = {.variant = "minimal_scalar",
                 .trial_processes = 5,
                 .family_size = 35,
                 .null_arms = 4,
                 .plants = {{.percent = 2, .arms = 1, .cycles = 400},
                            {.percent = 0.3, .arms = 1, .cycles = 60}}};
  header.pilot = {.launches = 10, .replay_us = 1000, .intercept_us = 1, .us_per_cycle = 0.05};
  RunInfo& run = header.run;
  run.run_id = "calibrate-invented";
  run.created_utc = "2026-01-02T03:04:05Z";
  run.design = run.family = kCalibrateDesign;
  run.processes = 5 * kGroups;
  run.blocks_per_process = kBlocks;
  run.cache = kCacheWarm;
  run.shapes = {ExampleShape("mission_b", 8, 512)};
  for (const PlannedArm& arm : ArmsOf(header.plan)) {
    run.arms.push_back({arm.name, "minimal_scalar", arm.role, "", arm.base});
  }
  run.arms.push_back({"floor:empty_kernel", "", kRoleFloor, "", ""});
  analysis::Random random(7);
  for (int process = 0; process < run.processes; ++process) {
    for (int block = 0; block < kBlocks; ++block) {
      CalibrationBlock b = {.process = process,
                            .block = block,
                            .order = {},
                            .launches = {},
                            .us = {},
                            .sm_mhz = {},
                            .throttle = {}};
      for (size_t i = 0; i < run.arms.size(); ++i) {
        const std::string& name = run.arms[i].name;
        double us = name.rfind("planted_2%", 0) == 0     ? 102
                    : name.rfind("planted_0.3%", 0) == 0 ? 100.3
                    : name.rfind("delay_2%", 0) == 0     ? 20
                    : name.rfind("delay_0.3%", 0) == 0   ? 3
                    : run.arms[i].role == kRoleFloor     ? 0.5
                                                         : 100;
        us *= 1 + 0.001 * (random.Uniform() - 0.5);
        b.order.push_back(static_cast<int>(i));
        b.launches.push_back(10);
        b.us.push_back(us);
        b.sm_mhz.push_back(1980);
      }
      record.blocks.push_back(b);
    }
  }
  record.checks = 42;
  return record;
}

Json SummaryOf(const CalibrationRecord& record) {
  const auto summary = SummarizeCalibration(record, {.bootstrap_resamples = 500});
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? ToJson(*summary) : Json();
}

std::string TableOf(const Json& summary) {
  return report::CalibrationTable(*FromJson<summary::CalibrationSummary>(summary));
}

TEST(CalibrationSummaryTest, IdenticalArmsAreNeutralAndPlantsAreFound) {
  const Json summary = SummaryOf(Example());
  EXPECT_EQ(summary["aa"]["trials"], 2 * kGroups);
  EXPECT_EQ(summary["aa"]["false_verdicts"]["count"], 0);
  EXPECT_EQ(summary["aa"]["verdicts"]["NEUTRAL"], 2 * kGroups);
  EXPECT_EQ(summary["aa"]["families_with_false_verdict"]["of"], kGroups);
  const Json& two = summary["plants"][0];
  EXPECT_NEAR(two["achieved_percent"].get<double>(), 2, 0.05);
  EXPECT_NEAR(two["by_delay_percent"].get<double>(), 2, 0.05);
  EXPECT_EQ(two["found"]["count"], kGroups);
  EXPECT_EQ(two["found_in_family"]["count"], kGroups);
  const Json& small = summary["plants"][1];
  EXPECT_NEAR(small["achieved_percent"].get<double>(), 0.3, 0.05);
  EXPECT_EQ(small["found"]["count"], 0);
  EXPECT_EQ(small["neutral"]["count"], kGroups);
  EXPECT_EQ(summary["trials"].size(), 4u * kGroups);
}

TEST(CalibrationSummaryTest, TheTrialsOfAGroupMakeFamiliesOfTheSizeThatThePlanNames) {
  CalibrationRecord record = Example();
  record.header.plan.aa_family = 1;
  for (CalibrationBlock& block : record.blocks) block.us[1] *= 1.05;  // the first A/A pair
  const Json aa = SummaryOf(record)["aa"];
  EXPECT_EQ(aa["family_size"], 1);
  EXPECT_EQ(aa["families_with_false_verdict"]["of"], 2 * kGroups);
  EXPECT_EQ(aa["families_with_false_verdict"]["count"], kGroups);
  // Two A/A pairs of a group are no more than one family, whatever the size.
  record.header.plan.aa_family = 5;
  EXPECT_EQ(SummaryOf(record)["aa"]["families_with_false_verdict"]["of"], kGroups);
}

TEST(CalibrationSummaryTest, AllPlantedIntervalsAreCountedTogetherAndHeldAgainstTheirConfidence) {
  const Json summary = SummaryOf(Example());
  const Json& held = summary["planted_intervals"];
  int count = 0;
  for (const Json& plant : summary["plants"]) {
    count += plant["intervals_holding_truth"]["count"].get<int>();
  }
  EXPECT_EQ(held["count"], count);
  EXPECT_EQ(held["of"], 2 * kGroups);
  // All of six: nothing is more, so "as few" is certain. One less: 1 - 0.95^6.
  EXPECT_NEAR(held["chance_of_as_few"].get<double>(),
              count == 2 * kGroups ? 1 : 1 - std::pow(0.95, 2 * kGroups), 1e-6);
  ASSERT_GE(count, 2 * kGroups - 1);
}

TEST(CalibrationSummaryTest, FewTrialsShowNoTargetThoughNothingContradictsIt) {
  const Json summary = SummaryOf(Example());
  for (const Json& target : summary["targets"]) EXPECT_EQ(target["outcome"], "open") << target;
}

// Groups are counted by what was measured: this would take hours by what was planned.
TEST(CalibrationSummaryTest, WhatWasPlannedAndNeverRunTakesNoTime) {
  CalibrationRecord record = Example();
  record.header.run.processes = std::numeric_limits<int>::max();
  const Json summary = SummaryOf(record);
  EXPECT_EQ(summary["groups"]["planned"], std::numeric_limits<int>::max() / 5);
  EXPECT_EQ(summary["groups"]["used"], kGroups);
}

TEST(CalibrationSummaryTest, ArmsThatDifferAreFalseVerdictsAndMissTheTarget) {
  CalibrationRecord record = Example();
  for (CalibrationBlock& block : record.blocks) block.us[1] *= 1.05;  // the first A/A pair
  const Json summary = SummaryOf(record);
  EXPECT_EQ(summary["aa"]["false_verdicts"]["count"], kGroups);
  EXPECT_EQ(summary["aa"]["families_with_false_verdict"]["count"], kGroups);
  EXPECT_EQ(summary["targets"][0]["name"], "aa_verdict");
  EXPECT_EQ(summary["targets"][0]["outcome"], "missed");
}

// The hardware slowed down, which is no question of the power limit.
void Throttle(CalibrationRecord& record, size_t arm, int group) {
  for (CalibrationBlock& block : record.blocks) {
    if (block.process / 5 != group) continue;
    block.throttle.resize(record.header.run.arms.size(), 0);
    block.throttle[arm] = 0x8;
  }
}

TEST(CalibrationSummaryTest, TrialsThatAreInvalidStandInNoRate) {
  CalibrationRecord record = Example();
  Throttle(record, 1, 0);  // of the first A/A pair
  const Json summary = SummaryOf(record);
  const Json& aa = summary["aa"];
  EXPECT_EQ(aa["trials"], 2 * kGroups);
  EXPECT_EQ(aa["invalid_trials"], 1);
  EXPECT_EQ(aa["verdicts"]["INVALID"], 1);
  for (const char* rate :
       {"false_verdicts", "false_verdicts_in_family", "intervals_holding_truth"}) {
    EXPECT_EQ(aa[rate]["of"], 2 * kGroups - 1) << rate;
  }
  // Both pairs of a group are a family.
  EXPECT_EQ(aa["families_with_false_verdict"]["of"], kGroups - 1);
  EXPECT_EQ(summary["targets"][0]["of"], 2 * kGroups - 1);
  EXPECT_FALSE(summary["plants"][0].contains("invalid_trials"));
  EXPECT_THAT(*report::RenderCalibration(summary, {}),
              HasSubstr("- INVALID: 1 of 6 trials. They count in no rate"));
  EXPECT_THAT(*report::RenderCalibration(SummaryOf(Example()), {}), Not(HasSubstr("INVALID: ")));
}

TEST(CalibrationSummaryTest, TrialsThatAreInvalidStandInNoMedian) {
  CalibrationRecord record = Example();
  // A spread of 20% between processes in both A/A pairs of two of the three groups, four of six
  // trials.
  const size_t candidates[] = {1, 3};
  for (CalibrationBlock& block : record.blocks) {
    if (block.process / 5 == kGroups - 1 || block.process % 2 == 0) continue;
    for (const size_t arm : candidates) block.us[arm] *= 1.2;
  }
  const Json loud = SummaryOf(record)["aa"];
  EXPECT_GT(loud["half_width_percent_p50"].get<double>(), 1);
  EXPECT_GT(loud["largest_percent"].get<double>(), 1);
  for (int group = 0; group < kGroups - 1; ++group) {
    for (const size_t arm : candidates) Throttle(record, arm, group);
  }
  const Json valid = SummaryOf(record)["aa"];
  EXPECT_EQ(valid["invalid_trials"], 4);
  EXPECT_LT(valid["half_width_percent_p50"].get<double>(), 1);
  EXPECT_LT(valid["largest_percent"].get<double>(), 1);
}

TEST(CalibrationSummaryTest, ACalibrationThatWasThrottledThroughoutShowsNothing) {
  CalibrationRecord record = Example();
  for (int group = 0; group < kGroups; ++group) {
    for (size_t arm = 0; arm < record.header.run.arms.size(); ++arm) Throttle(record, arm, group);
  }
  const Json summary = SummaryOf(record);
  for (const Json& target : summary["targets"]) {
    EXPECT_EQ(target["of"], 0) << target;
    EXPECT_EQ(target["outcome"], "open") << target;
  }
  EXPECT_EQ(summary["plants"][0]["invalid_trials"], kGroups);
  EXPECT_EQ(summary["plants"][0]["found"]["of"], 0);
  EXPECT_EQ(summary["planted_intervals"]["of"], 0);
  EXPECT_THAT(TableOf(summary), HasSubstr("0 of 0"));
  const auto page = report::RenderCalibration(summary, {});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("6 of 6 trials are INVALID and count in no rate."));
}

TEST(CalibrationSummaryTest, AGroupThatIsNotWholeIsLeftOut) {
  CalibrationRecord record = Example();
  record.blocks.pop_back();
  const Json summary = SummaryOf(record);
  EXPECT_EQ(summary["groups"]["used"], kGroups - 1);
  EXPECT_EQ(summary["aa"]["trials"], 2 * (kGroups - 1));
  EXPECT_EQ(summary["provenance"]["blocks_missing"], 1);
  record.blocks.resize(3);
  EXPECT_EQ(SummarizeCalibration(record).status().code(), absl::StatusCode::kDataLoss);
}

TEST(CalibrationSummaryTest, TheSameRecordGivesTheSameBytesAndAPage) {
  const Json summary = SummaryOf(Example());
  EXPECT_EQ(summary.dump(), SummaryOf(Example()).dump());
  const auto page = report::RenderCalibration(summary, {.picture_prefix = "plots/"});
  report::OtherRuns others;
  others.families = {.runs = {"calibrate-a"}, .with_false_verdict = 0, .of = 400, .bound = 0.0075};
  EXPECT_THAT(*report::RenderCalibration(summary, {}, others),
              HasSubstr("Together with `calibrate-a`: **0 of 400** families of identical arms have "
                        "a false verdict, at most 0.75% at a one-sided 95%: the limit of 1% is "
                        "**shown**"));
  EXPECT_THAT(*page, Not(HasSubstr("Together with")));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("plots/calibration.svg"));
  EXPECT_THAT(*page, HasSubstr("0 of 6 (0.0%"));
  EXPECT_THAT(*page, HasSubstr("42 checks"));
  EXPECT_THAT(*page, HasSubstr("(#what-it-does-not-cover)"));
  EXPECT_THAT(*page, HasSubstr("9 variants, nearly all of them one kernel"));
  EXPECT_THAT(*page, HasSubstr("No other record is at hand"));
  EXPECT_THAT(TableOf(summary), HasSubstr("0 (A/A)"));
  Json broken = summary;
  broken.erase("aa");
  EXPECT_EQ(report::RenderCalibration(broken, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CalibrationSummaryTest, APageOfNoProblemIsRefused) {
  Json summary = SummaryOf(Example());
  summary["shapes"] = Json::array();
  EXPECT_THAT(report::RenderCalibration(summary, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shapes must not be empty")));
}

TEST(CalibrationSummaryTest, APageOfCountsThatAreNoneIsRefused) {
  const Json summary = SummaryOf(Example());
  for (const Json& bad :
       {Json(-1), Json(0.5), Json(1e300), Json(std::numeric_limits<int64_t>::max()),
        Json(std::numeric_limits<uint64_t>::max()), Json(true), Json(nullptr)}) {
    Json damaged = summary;
    damaged["provenance"]["blocks_missing"] = bad;
    EXPECT_THAT(report::RenderCalibration(damaged, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("provenance.blocks_missing: expected")));
  }
}

}  // namespace
}  // namespace warpledger::ablations
