// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/gate.h"

#include <gmock/gmock.h>

#include "reports/compared/compared.h"
#include "tests/ablations/judge/compare/compared_records.h"

namespace warpledger::ablations {
namespace {

using report::GateJUnit;
using report::GateMarkdown;
using report::GateText;
using summary::GateCell;
using summary::GateOutcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTilingArm[] = "ladder:kv_tiling";
constexpr char kWmmaArm[] = "ladder:wmma_qk";

GateResult GateOf(const Record& baseline, const Record& record, GateOptions options = {}) {
  options.bootstrap_resamples = 2000;
  return Gate(Judged(baseline), Judged(record), options).value();
}

const GateCell& GateCellOf(const GateResult& gate, const std::string& variant,
                           const std::string& shape) {
  for (const GateCell& cell : gate.cells) {
    if (cell.variant == variant && cell.shape == shape) return cell;
  }
  ADD_FAILURE() << "no cell " << variant << " on " << shape;
  static const GateCell kNone;
  return kNone;
}

void Break(Record& record, const std::string& arm, const std::string& shape) {
  for (Check& check : record.checks) {
    if (check.arm == arm && check.shape == shape) check.correct = false;
  }
}

TEST(GateTest, TwoRunsOfOneThingPass) {
  const GateResult gate = GateOf(ExampleRecord(1), ExampleRecord(2));
  EXPECT_EQ(gate.exit, 0) << GateText(gate);
  EXPECT_EQ(gate.Count(GateOutcome::kPass), 6);
  EXPECT_TRUE(gate.notes.empty());
}

TEST(GateTest, TwoRunsOfOneThingSeldomFailWhateverTheirNoise) {
  for (const double spread : {0.001, 0.01, 0.05}) {
    int regressions = 0;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      const ExampleNoise noise = {.processes = 3, .process = spread};
      const GateResult gate = GateOf(ExampleRecord(2 * seed, noise),
                                     ExampleRecord(2 * seed + 1, noise), {.tolerance = 0.002});
      regressions += gate.exit == summary::kGateRegression ? 1 : 0;
    }
    // At 95% one or two of 30 are due, were the true change on the tolerance.
    EXPECT_LE(regressions, 2) << spread;
  }
}

TEST(GateTest, ASlowDownOfFivePerCentInOneCellIsFound) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.05);
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 1);
  EXPECT_EQ(gate.Count(GateOutcome::kRegression), 1);
  EXPECT_EQ(gate.Count(GateOutcome::kPass), 5);
  const GateCell& cell = GateCellOf(gate, kTilingArm, "small");
  EXPECT_EQ(cell.outcome, GateOutcome::kRegression);
  EXPECT_NEAR(*cell.change, 0.05, 0.003);
  EXPECT_GT(*cell.low, 0.02);
  EXPECT_LT(*cell.high, 0.08);
  EXPECT_THAT(cell.reason, HasSubstr("machine code is the same in both"));
}

TEST(GateTest, ASlowDownOfFivePerCentEverywhereIsFoundEverywhere) {
  Record record = ExampleRecord(2);
  for (Sample& sample : record.samples) sample.us *= 1.05;
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 1);
  EXPECT_EQ(gate.Count(GateOutcome::kRegression), 6);
  // The empty kernel and the peer slowed down too, so somebody should look there.
  EXPECT_EQ(gate.notes.size(), 4u);
  EXPECT_THAT(gate.notes[0], HasSubstr("floor:empty_kernel"));
}

TEST(GateTest, ASlowDownWithinTheToleranceAndASpeedUpPass) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.05);
  ScaleTimes(record, kWmmaArm, "small", 0.5);
  const GateResult gate = GateOf(ExampleRecord(1), record, {.tolerance = 0.1});
  EXPECT_EQ(gate.exit, 0);
  EXPECT_NEAR(*GateCellOf(gate, kWmmaArm, "small").change, -0.5, 0.01);
}

TEST(GateTest, AnIntervalThatHoldsTheToleranceTellsNothing) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.02);
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 2);
  EXPECT_EQ(GateCellOf(gate, kTilingArm, "small").outcome, GateOutcome::kCannotTell);
  EXPECT_THAT(GateCellOf(gate, kTilingArm, "small").reason, HasSubstr("holds the allowed +2%"));
}

TEST(GateTest, NoisyProcessesTellNothing) {
  const ExampleNoise loud = {.processes = 3, .process = 0.1};
  const GateResult gate = GateOf(ExampleRecord(1, loud), ExampleRecord(2, loud));
  EXPECT_EQ(gate.exit, 2);
}

TEST(GateTest, VisitsThatWaitedForTheHostAreNoRegressionAndHideNone) {
  Record whole = ExampleRecord(1);
  StarveVisits(whole, kTilingArm, "small", 0);
  Record starved = ExampleRecord(2);
  StarveVisits(starved, kTilingArm, "small", 18);
  EXPECT_EQ(GateOf(whole, starved).exit, summary::kGatePass);
  // A baseline that looks slow would let a slower record pass.
  ScaleTimes(whole, kTilingArm, "small", 1.05);
  EXPECT_EQ(GateOf(starved, whole).exit, summary::kGateRegression);
}

TEST(GateTest, ACellThatLostMostOfItsVisitsTellsNothing) {
  Record whole = ExampleRecord(1);
  StarveVisits(whole, kTilingArm, "small", 0);
  for (const int count : {24, 40}) {
    Record starved = ExampleRecord(2);
    StarveVisits(starved, kTilingArm, "small", count);
    for (const GateResult& gate : {GateOf(whole, starved), GateOf(starved, whole)}) {
      const GateCell& cell = GateCellOf(gate, kTilingArm, "small");
      EXPECT_EQ(cell.outcome, GateOutcome::kCannotTell) << cell.reason;
      EXPECT_THAT(cell.reason, HasSubstr("the GPU waited for the host"));
      EXPECT_EQ(gate.exit, summary::kGateCannotTell);
    }
  }
}

TEST(GateTest, TooFewProcessesTellNothing) {
  Record record = ExampleRecord(2, {.processes = 1});
  ScaleTimes(record, kTilingArm, "small", 3);
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 2);
  EXPECT_EQ(gate.Count(GateOutcome::kCannotTell), 6);
  EXPECT_THAT(gate.cells[0].reason, HasSubstr("1 process only"));
  EXPECT_THAT(GateText(gate), HasSubstr("Can't tell"));
}

TEST(GateTest, AMissingCellIsNoPass) {
  Record record = ExampleRecord(2);
  DropArm(record, "control:aa");
  DropArm(record, "control:null_toggle");
  DropArm(record, kWmmaArm);
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 3);
  EXPECT_EQ(gate.Count(GateOutcome::kMissing), 2);
  EXPECT_EQ(GateCellOf(gate, kWmmaArm, "small").outcome, GateOutcome::kMissing);
}

TEST(GateTest, ACellThatWasNeverSampledIsMissing) {
  Record record = ExampleRecord(2);
  std::erase_if(record.samples, [](const Sample& s) { return s.arm == kWmmaArm; });
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 3);
  EXPECT_EQ(GateCellOf(gate, kWmmaArm, "small").outcome, GateOutcome::kMissing);
}

TEST(GateTest, ANewCellIsListedAndPasses) {
  Record baseline = ExampleRecord(1);
  DropArm(baseline, "control:aa");
  DropArm(baseline, "control:null_toggle");
  DropArm(baseline, kWmmaArm);
  const GateResult gate = GateOf(baseline, ExampleRecord(2));
  EXPECT_EQ(gate.exit, 0);
  EXPECT_EQ(gate.Count(GateOutcome::kNew), 2);
}

TEST(GateTest, RecordsWithoutACommonCellAreNoPass) {
  Record baseline = ExampleRecord(1);
  for (const Arm& arm : ExampleRun().arms) {
    if (arm.role != kRoleFloor) DropArm(baseline, arm.name);
  }
  const GateResult gate = GateOf(baseline, ExampleRecord(2));
  EXPECT_EQ(gate.exit, 3);
  EXPECT_EQ(gate.Count(GateOutcome::kNew), 6);
}

TEST(GateTest, ABrokenCellIsNoPassOnEitherSide) {
  Record broken = ExampleRecord(2);
  Break(broken, kTilingArm, "small");
  EXPECT_EQ(GateOf(ExampleRecord(1), broken).exit, 3);
  const GateResult gate = GateOf(broken, ExampleRecord(1));
  EXPECT_EQ(gate.exit, 3);
  EXPECT_EQ(GateCellOf(gate, kTilingArm, "small").outcome, GateOutcome::kBroken);
  EXPECT_EQ(gate.Count(GateOutcome::kPass), 5);
}

TEST(GateTest, ACellThatWasNeverCheckedIsBroken) {
  Record record = ExampleRecord(2);
  std::erase_if(record.checks, [](const Check& check) { return check.arm == kTilingArm; });
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 3);
  EXPECT_EQ(gate.Count(GateOutcome::kBroken), 2);
}

TEST(GateTest, ARegressionThatWasShownGoesBeforeWhatCouldNotBeCompared) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.05);
  Break(record, kWmmaArm, "small");
  EXPECT_EQ(GateOf(ExampleRecord(1), record).exit, 1);
}

TEST(GateTest, WhatCouldNotBeComparedGoesBeforeWhatCannotBeTold) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.02);
  Break(record, kWmmaArm, "small");
  EXPECT_EQ(GateOf(ExampleRecord(1), record).exit, 3);
}

TEST(GateTest, AnotherGpuIsRefusedUnlessAllowed) {
  Record record = ExampleRecord(2);
  record.run.gpu.uuid = "GPU-2";
  GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 3);
  EXPECT_TRUE(gate.cells.empty());
  EXPECT_THAT(gate.why_refused, AllOf(HasSubstr("two boards"), HasSubstr("--allow_other_gpu")));
  gate = GateOf(ExampleRecord(1), record, {.allow_other_gpu = true});
  EXPECT_EQ(gate.exit, 0);
  ASSERT_EQ(gate.notes.size(), 1u);
  EXPECT_EQ(gate.notes[0], "gpu.uuid was GPU-1, now is GPU-2");

  record.run.gpu.name = "NVIDIA L4";
  gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 3);
  EXPECT_THAT(gate.why_refused, HasSubstr("on NVIDIA H200, the record on NVIDIA L4"));
}

TEST(GateTest, AnotherCacheModeIsRefused) {
  Record record = ExampleRecord(2);
  record.run.cache = "cold";
  const GateResult gate = GateOf(ExampleRecord(1), record, {.allow_other_gpu = true});
  EXPECT_EQ(gate.exit, 3);
  EXPECT_THAT(gate.why_refused, HasSubstr("'cold'"));
}

// Changed sources are what a gate is there for; another study is another question.
TEST(GateTest, AnotherStudyIsRefused) {
  Record a = ExampleRecord(1);
  Record b = ExampleRecord(2);
  const auto definition = [](const char* name, const char* sha256) {
    return nlohmann::ordered_json{{"study", {{"name", name}}},
                                  {"libraries", {{"base", {"/a", sha256}}}}};
  };
  a.run.definition.json = definition("sums", "aa");
  b.run.definition.json = definition("sums", "bb");
  GateResult gate = GateOf(a, b);
  EXPECT_EQ(gate.why_refused, "");
  EXPECT_TRUE(gate.notes.empty()) << gate.notes[0];
  b.run.definition.json = definition("norms", "aa");
  gate = GateOf(a, b);
  EXPECT_EQ(gate.exit, summary::kGateNotCompared);
  EXPECT_THAT(gate.why_refused,
              HasSubstr("the baseline is of study 'sums', the record of 'norms'"));
  JudgedRecord other = Judged(b);
  other.record.run.subject = "python";
  EXPECT_THAT(Gate(Judged(a), other, {})->why_refused,
              HasSubstr("the baseline measured sdpa, the record python"));
}

TEST(GateTest, ControlsAreNotGated) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, "control:aa", "", 2);
  EXPECT_EQ(GateOf(ExampleRecord(1), record).exit, 0);
}

TEST(GateTest, AToleranceOutsideItsRangeIsRefused) {
  for (const double tolerance : {0.0, -0.02, 1.5}) {
    const absl::StatusOr<GateResult> gate =
        Gate(Judged(ExampleRecord(1)), Judged(ExampleRecord(2)), {.tolerance = tolerance});
    EXPECT_TRUE(absl::IsInvalidArgument(gate.status())) << tolerance;
  }
}

TEST(GateTest, ChangedConditionsAreNoted) {
  Record record = ExampleRecord(2);
  record.run.gpu.driver = "999.0";
  record.run.kernel_source_sha256 = "cc";  // what a gate is there for
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 0);
  ASSERT_EQ(gate.notes.size(), 1u);
  EXPECT_EQ(gate.notes[0], "gpu.driver was 580.0, now is 999.0");
}

TEST(GateTest, AnUnfinishedRecordIsNoted) {
  Record record = ExampleRecord(2);
  record.run.processes = 6;  // of which five were measured
  const GateResult gate = GateOf(ExampleRecord(1), record);
  EXPECT_EQ(gate.exit, 0);
  ASSERT_EQ(gate.notes.size(), 1u);
  EXPECT_THAT(gate.notes[0], HasSubstr("the record is unfinished: it lacks 16 blocks"));
}

TEST(GateTest, TheMarkdownShowsWhatIsWrongAndFoldsTheRest) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.05);
  const std::string markdown = GateMarkdown(GateOf(ExampleRecord(1), record));
  const size_t folded = markdown.find("<details>");
  ASSERT_NE(folded, std::string::npos);
  EXPECT_THAT(markdown.substr(0, folded),
              AllOf(HasSubstr("**REGRESSION**"), HasSubstr(kTilingArm)));
  EXPECT_THAT(markdown.substr(folded), Not(HasSubstr("REGRESSION")));
  EXPECT_THAT(markdown, HasSubstr("5 passed"));
}

TEST(GateTest, TheJUnitFileCountsWhatItHolds) {
  Record record = ExampleRecord(2);
  ScaleTimes(record, kTilingArm, "small", 1.05);
  ScaleTimes(record, kTilingArm, "mission_b", 1.02);
  Break(record, kWmmaArm, "small");
  const std::string xml = GateJUnit(GateOf(ExampleRecord(1), record));
  EXPECT_THAT(xml, HasSubstr("tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"REGRESSION\""));
  EXPECT_THAT(xml, HasSubstr("<error type=\"BROKEN\""));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"CANNOT_TELL"));
}

TEST(GateTest, TheJUnitFileEscapesWhatARecordMayHold) {
  Record baseline = ExampleRecord(1);
  baseline.run.run_id = "<a & \"b\">\n\x01";
  const std::string xml = GateJUnit(GateOf(baseline, ExampleRecord(2)));
  EXPECT_THAT(xml, HasSubstr("value=\"&lt;a &amp; &quot;b&quot;&gt;  \""));
}

}  // namespace
}  // namespace warpledger::ablations
