// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/calibration_plan.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "ablations/measure/run.h"
#include "ablations/record/record.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

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
