// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/calibration.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "ablations/base/files.h"
#include "ablations/measure/run.h"
#include "ablations/record/record.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

CalibrationHeader Header() {
  CalibrationHeader header;
  header.plan = {.variant = "minimal_scalar",
                 .trial_processes = 2,
                 .family_size = 7,
                 .null_arms = 2,
                 .plants = {{.percent = 0.5, .arms = 1, .cycles = 900}}};
  header.pilot = {.launches = 8, .replay_us = 1000, .intercept_us = 1, .us_per_cycle = 0.0005};
  RunInfo& run = header.run;
  run.design = kCalibrateDesign;
  run.processes = 4;
  run.cache = kCacheWarm;
  run.blocks_per_process = 3;
  run.replay_us = 1000;
  run.max_launches = 256;
  run.gpu.power_limit_w = 700;
  run.shapes = {ExampleShape("mission_b", 8, 512)};
  for (const PlannedArm& arm : ArmsOf(header.plan)) {
    run.arms.push_back({arm.name, "minimal_scalar", arm.role, "", arm.base});
  }
  run.arms.push_back({"floor:empty_kernel", "", kRoleFloor, "", ""});
  return header;
}

CalibrationBlock Block(int process, int block) {
  return {.process = process,
          .block = block,
          .order = {4, 0, 1, 2, 3},
          .launches = {8, 8, 8, 40, 256},
          .us = {100.25, 101, 102, 5, 0.5},
          .sm_mhz = {1980, 1980, 1980, 1980, 1980},
          .throttle = {0, 0, 4, 0, 0},
          .temp_c = 40,
          .power_w = 300};
}

class CalibrationRecordTest : public ::testing::Test {
 protected:
  std::string BlocksPath() const { return dir_ + "/" + kBlocksFile; }

 private:
  const ScratchFolder parent_ = ScratchFolder::Make().value();

 protected:
  const std::string dir_ = parent_.path() + "/record";  // not there yet
};

TEST(CalibrationHeaderTest, ItsArmsAreThoseOfItsPlan) {
  ASSERT_TRUE(FromJson<CalibrationHeader>(ToJson(Header())).ok());
  const auto damage = [](auto change) {
    CalibrationHeader header = Header();
    change(header.run.arms);
    return std::string(FromJson<CalibrationHeader>(ToJson(header)).status().message());
  };
  EXPECT_THAT(damage([](auto& arms) { arms[1].base = "no_such_arm"; }),
              HasSubstr("stands where the plan has"));
  EXPECT_THAT(damage([](auto& arms) { arms[0].name = arms[1].name; }),
              HasSubstr("stands where the plan has"));
  EXPECT_THAT(damage([](auto& arms) { arms[0].role = kRoleFloor; }),
              HasSubstr("stands where the plan has"));
  EXPECT_THAT(damage([](auto& arms) { arms.back().role = kRoleBase; }), HasSubstr("empty kernel"));
  EXPECT_THAT(damage([](auto& arms) { arms.pop_back(); }), HasSubstr("the plan has"));
}

TEST_F(CalibrationRecordTest, WhatIsWrittenIsRead) {
  {
    auto writer = CalibrationWriter::Open(dir_, Header()).value();
    ASSERT_TRUE(writer->Append(Block(0, 0)).ok());
    ASSERT_TRUE(writer->Append(CalibrationChecks{0, 12}).ok());
    ASSERT_TRUE(writer->Append(Block(1, 2)).ok());
  }
  EXPECT_TRUE(IsCalibrationRecord(dir_));
  const auto record = LoadCalibration(dir_).value();
  EXPECT_EQ(record.header.run, Header().run);
  EXPECT_EQ(record.header.plan, Header().plan);
  EXPECT_EQ(record.header.pilot, Header().pilot);
  EXPECT_EQ(record.checks, 12);
  EXPECT_EQ(record.blocks, (std::vector{Block(0, 0), Block(1, 2)}));
}

TEST_F(CalibrationRecordTest, AfterAKillAnywhereInALineTheWholeBlocksBeforeItAreKept) {
  { ASSERT_TRUE((*CalibrationWriter::Open(dir_, Header()))->Append(Block(0, 0)).ok()); }
  const auto whole = std::filesystem::file_size(BlocksPath());
  const std::string line = DumpLine(ToJson(Block(0, 1)));
  for (size_t cut = 1; cut <= line.size(); ++cut) {
    std::filesystem::resize_file(BlocksPath(), whole);
    std::ofstream(BlocksPath(), std::ios::app) << line.substr(0, cut);
    EXPECT_EQ(LoadCalibration(dir_).status().code(), absl::StatusCode::kDataLoss);
    auto writer = CalibrationWriter::Open(dir_, Header()).value();
    EXPECT_TRUE(writer->Has(0, 0));
    EXPECT_FALSE(writer->Has(0, 1));
    EXPECT_EQ(std::filesystem::file_size(BlocksPath()), whole);
  }
}

TEST_F(CalibrationRecordTest, ASecondWriterIsRefused) {
  auto writer = CalibrationWriter::Open(dir_, Header()).value();
  EXPECT_EQ(CalibrationWriter::Open(dir_, Header()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(CalibrationRecordTest, AnotherCalibrationInTheDirectoryIsRefusedByName) {
  { ASSERT_TRUE(CalibrationWriter::Open(dir_, Header()).ok()); }
  const std::pair<void (*)(CalibrationHeader&), const char*> kChanges[] = {
      {[](CalibrationHeader& header) { header.run.seed = 9; }, "seed was '0', now is '9'"},
      {[](CalibrationHeader& header) { header.run.gpu.uuid = "GPU-2"; },
       "gpu.uuid was '', now is 'GPU-2'"},
      {[](CalibrationHeader& header) { header.run.gpu.driver = "570"; },
       "gpu.driver was '', now is '570'"},
      {[](CalibrationHeader& header) { header.run.toolchain.nvcc = "13.1"; }, "toolchain was '"},
      {[](CalibrationHeader& header) { header.run.replay_us = 500; },
       "replay_us was '1000.0', now is '500.0'"},
      {[](CalibrationHeader& header) { header.run.max_launches = 64; },
       "max_launches was '256', now is '64'"},
      {[](CalibrationHeader& header) { header.run.gpu.power_limit_w = 500; },
       "gpu.power_limit_w was '700.0', now is '500.0'"},
      {[](CalibrationHeader& header) { header.plan.plants[0].cycles = 901; },
       "plan was 'calibrate:minimal_scalar;processes=2;family=7;nulls=2;plants=0.5%x1@900', now is "
       "'calibrate:minimal_scalar;processes=2;family=7;nulls=2;plants=0.5%x1@901'"},
  };
  for (const auto& [change, error] : kChanges) {
    CalibrationHeader other = Header();
    change(other);
    EXPECT_THAT(std::string(CalibrationWriter::Open(dir_, other).status().message()),
                HasSubstr(error));
  }
  CalibrationHeader silent = Header();
  silent.run.gpu.power_limit_w.reset();
  EXPECT_TRUE(CalibrationWriter::Open(dir_, silent).ok());
}

TEST_F(CalibrationRecordTest, BlocksWithoutARunFileAreRefusedAndLeftAlone) {
  { ASSERT_TRUE((*CalibrationWriter::Open(dir_, Header()))->Append(Block(0, 0)).ok()); }
  std::filesystem::remove(dir_ + "/" + kRunFile);
  const auto bytes = std::filesystem::file_size(BlocksPath());
  EXPECT_THAT(
      CalibrationWriter::Open(dir_, Header()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("holds blocks but no run.json")));
  EXPECT_FALSE(HasRecord(dir_));
  EXPECT_EQ(std::filesystem::file_size(BlocksPath()), bytes);
}

TEST_F(CalibrationRecordTest, ARunFileOfALaterSchemaIsNoDamage) {
  { ASSERT_TRUE(CalibrationWriter::Open(dir_, Header()).ok()); }
  const auto with_schema = [&](const nlohmann::ordered_json& version) {
    nlohmann::ordered_json json = ToJson(Header());
    json["schema_version"] = version;
    std::ofstream(dir_ + "/" + kRunFile) << json;
    return LoadCalibrationHeader(dir_).status();
  };
  EXPECT_THAT(with_schema(99), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("/record/run.json: schema_version: ")));
  EXPECT_THAT(with_schema("1"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("/record/run.json: schema_version: expected an integer")));
}

TEST_F(CalibrationRecordTest, DamageIsAnErrorThatNamesTheLine) {
  { ASSERT_TRUE((*CalibrationWriter::Open(dir_, Header()))->Append(Block(0, 0)).ok()); }
  const auto after = [&](const nlohmann::ordered_json& line) {
    const auto whole = std::filesystem::file_size(BlocksPath());
    std::ofstream(BlocksPath(), std::ios::app) << SummedLine(line);
    const absl::Status status = LoadCalibration(dir_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    std::filesystem::resize_file(BlocksPath(), whole);
    return std::string(status.message());
  };
  EXPECT_THAT(after(ToJson(Block(0, 0))), HasSubstr("blocks.jsonl:2: a block that was there"));
  EXPECT_THAT(after(ToJson(Block(4, 0))), HasSubstr("does not plan"));
  EXPECT_THAT(after(ToJson(Block(0, 3))), HasSubstr("does not plan"));
  EXPECT_THAT(after({{"process", 0}, {"checks", -1}}), HasSubstr("checks: expected a number"));
  CalibrationBlock block = Block(0, 1);
  block.us[2] = 0;
  EXPECT_THAT(after(ToJson(block)), HasSubstr("us[2]: expected a time above 0"));
  block = Block(0, 1);
  block.us.pop_back();
  EXPECT_THAT(after(ToJson(block)), HasSubstr("as many samples"));
  block = Block(0, 1);
  block.order[0] = 3;
  EXPECT_THAT(after(ToJson(block)), HasSubstr("order"));
  std::ofstream(BlocksPath(), std::ios::trunc) << "[]\n";
  EXPECT_THAT(LoadCalibration(dir_).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("expected an object")));
}

TEST(CalibrationBlockTest, NumbersThatDoNotFitAreErrorsAndNeverWrapAroundOrLoseTheirFraction) {
  using Json = nlohmann::ordered_json;
  const Json good = ToJson(Block(0, 0));
  ASSERT_TRUE(CalibrationBlockFromJson(good, 5).ok());
  const auto refused = [&](const char* field, const Json& value) {
    Json json = good;
    json[field] = value;
    EXPECT_THAT(std::string(CalibrationBlockFromJson(json, 5).status().message()),
                HasSubstr(field));
  };
  for (const char* field : {"process", "block"}) {
    for (const Json& bad : {Json(int64_t{1} << 32), Json(0.5), Json(1e300), Json(true)}) {
      refused(field, bad);
    }
  }
  refused("order", {int64_t{1} << 32, 1, 2, 3, 4});
  refused("order", {0.5, 1, 2, 3, 4});
  refused("launches", int64_t{1} << 33);
  refused("launches", {8, 8, 8, 8, 1e300});
  refused("throttle", -1);
  refused("us", nullptr);
}

TEST(CalibrationHeaderTest, APilotHasItsNumbersOrIsRefused) {
  nlohmann::ordered_json json = ToJson(Header());
  json["pilot"]["launches"] = 1e300;
  EXPECT_THAT(std::string(FromJson<CalibrationHeader>(json).status().message()),
              HasSubstr("pilot.launches: expected an integer"));
}

TEST_F(CalibrationRecordTest, ADirectoryWithoutACalibrationIsNone) {
  EXPECT_FALSE(IsCalibrationRecord(dir_));
  EXPECT_FALSE(LoadCalibration(dir_).ok());
}

CalibrationPlan Plan() {
  return {.variant = "kv_tiling+warp_shuffle",
          .trial_processes = 5,
          .family_size = 35,
          .null_arms = 6,
          .plants = {{.percent = 0.5, .arms = 2, .cycles = 8000},
                     {.percent = 2, .arms = 6, .cycles = 40000}}};
}

TEST(CalibrationPlanTest, ThePrintedFormIsReadBackAsItWas) {
  const auto plan = ParsePlan(PlanText(Plan())).value();
  EXPECT_EQ(plan, Plan());
  CalibrationPlan none = Plan();
  none.plants.clear();
  EXPECT_EQ(*ParsePlan(PlanText(none)), none);
  CalibrationPlan families = Plan();
  families.aa_family = 3;
  EXPECT_EQ(*ParsePlan(PlanText(families)), families);
}

TEST(CalibrationPlanTest, TextThatIsNoPlanIsRefused) {
  const std::string good = PlanText(Plan());
  for (const char* bad :
       {"ladder", "calibrate:", "calibrate:x", "calibrate:x;processes=5;family=1;nulls=2",
        "calibrate:x;processes=0;family=1;nulls=2;plants=",
        "calibrate:x;processes=5;family=1;nulls=3;plants=",
        "calibrate:x;processes=5;family=1;nulls=2;plants=2%x3@10",
        "calibrate:x;processes=5;family=1;nulls=2;plants=2%x1@0",
        "calibrate:x;processes=5;family=1;nulls=2;plants=2x1@5",
        "calibrate:x;processes=5;family=1;nulls=2;plants=-2%x1@5",
        "calibrate:x;processes=5;family=1;nulls=8;aa_family=0;plants=",
        "calibrate:x;processes=5;family=1;nulls=8;aa_family=2;more=1;plants="}) {
    EXPECT_FALSE(ParsePlan(bad).ok()) << bad;
  }
  EXPECT_TRUE(ParsePlan(good).ok());
}

// Some hundred bytes of text could ask for more arms than fit into memory.
TEST(CalibrationPlanTest, MoreArmsThanABlockCanTimeAreRefusedBeforeTheyAreMade) {
  CalibrationPlan plan = Plan();
  plan.null_arms = kMostCalibrationArms - 10;
  EXPECT_TRUE(ParsePlan(PlanText(plan)).ok()) << "8 planted arms and 2 delays are the rest";
  plan.null_arms += 2;
  EXPECT_THAT(std::string(ParsePlan(PlanText(plan)).status().message()),
              HasSubstr("it has 10002 arms; 10000 are the most"));
  plan.null_arms = 5'000;
  for (int i = 0; i < 3; ++i) {
    plan.plants.push_back({.percent = 10.0 + i, .arms = 5'000, .cycles = 1});
  }
  EXPECT_THAT(std::string(ParsePlan(PlanText(plan)).status().message()), HasSubstr("the most"));
}

TEST(CalibrationPlanTest, TwoPlantsOfOneSizeWouldShareTheirNames) {
  CalibrationPlan plan = Plan();
  plan.plants[1].percent = plan.plants[0].percent;
  EXPECT_THAT(std::string(ParsePlan(PlanText(plan)).status().message()),
              HasSubstr("two plants of 0.5%"));
}

TEST(CalibrationPlanTest, TrialsOfOneKindShareNoArm) {
  const auto design = CalibrationDesign(PlanText(Plan())).value();
  std::map<std::string, std::set<std::string>> used;  // kind: arms of its trials
  int aa = 0;
  int planted = 0;
  int delays = 0;
  for (const PlannedArm& arm : design.arms) {
    delays += arm.spin_alone;
    EXPECT_EQ(arm.spin_cycles > 0, arm.role == kRolePlanted || arm.role == kRoleDelay);
    if (arm.role != kRoleAa && arm.role != kRolePlanted) continue;
    aa += arm.role == kRoleAa;
    planted += arm.role == kRolePlanted;
    const std::string kind = arm.role == kRoleAa ? "aa" : std::to_string(arm.spin_cycles);
    EXPECT_TRUE(used[kind].insert(arm.name).second) << arm.name;
    EXPECT_TRUE(used[kind].insert(arm.base).second) << arm.name << " on " << arm.base;
  }
  EXPECT_EQ(aa, 3);
  EXPECT_EQ(planted, 8);
  EXPECT_EQ(delays, 2);
}

TEST(CalibrationPlanTest, AllArmsButDelaysAreOneKernel) {
  const auto design = CalibrationDesign(PlanText(Plan())).value();
  for (const PlannedArm& arm : design.arms) {
    EXPECT_EQ(arm.config, arm.spin_alone ? "" : design.arms[0].config);
  }
  EXPECT_FALSE(CalibrationDesign("calibrate:no_such;processes=5;family=1;plants=").ok());
}

// A trial must be what `run` spends on a verdict.
TEST(CalibrationPlanTest, ATrialHasTheProcessesOfARun) {
  EXPECT_EQ(CalibrationPlan{}.trial_processes, RunOptions{}.processes);
}

}  // namespace
}  // namespace warpledger::ablations
