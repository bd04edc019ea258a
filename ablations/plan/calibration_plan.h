// SPDX-License-Identifier: Apache-2.0
// What a calibration times: many arms of one kernel, some of them slowed by a
// known delay, side by side in each block.
//
// Contract
// - Null arms are the same kernel under many names. Null arms 2k and 2k+1 make the
//   A/A trial k, so no two A/A trials share a sample.
// - A planted arm is the kernel with a delay at the end of each replay. It is
//   judged against a null arm of its own: trials of one size share no sample,
//   trials of different sizes, and A/A trials, may share a null arm's.
// - For each size an arm replays the delay alone, which measures the plant itself.
// - A trial is `trial_processes` processes in a row and all blocks of each.
// The plan has a printed form that a record keeps as it is, so that the arms of
// old records stay what they were.
//
// Errors: InvalidArgument for text that is no plan.
//
//   CalibrationPlan plan = {.variant = "kv_tiling", .null_arms = 40,
//                           .plants = {{.percent = 2, .arms = 10, .cycles = 40000}}};
//   absl::StatusOr<Design> design = CalibrationDesign(PlanText(plan));

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/subject.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

struct Plant {
  double percent = 0;  // the slow-down that is aimed at
  int arms = 0;
  int64_t cycles = 0;  // of the delay, per replay

  friend bool operator==(const Plant&, const Plant&) = default;
};

// "2%", as the names of arms print it.
std::string SizeText(const Plant& plant);

struct CalibrationPlan {
  std::string variant;  // printed configuration
  int trial_processes = 5;
  int family_size = 1;  // the family that a planted trial is judged in
  int null_arms = 2;    // even
  int aa_family = 2;    // A/A trials that are judged as one family, as a run's controls are
  std::vector<Plant> plants;

  friend bool operator==(const CalibrationPlan&, const CalibrationPlan&) = default;
};

constexpr bool IsCalibration(std::string_view design) {
  return design.substr(0, 10) == "calibrate:";
}

// The most arms that a plan may have, those of the delays included: a block times each.
inline constexpr int kMostCalibrationArms = 10'000;

// InvalidArgument where no calibration can be made of the plan: arms that would be too
// many, share a null arm within one size, or share a name.
absl::Status CheckPlan(const CalibrationPlan& plan);

// "calibrate:kv_tiling;processes=5;family=35;nulls=40;plants=2%x10@40000", and with A/A
// families of another size ";aa_family=4" before the plants.
std::string PlanText(const CalibrationPlan& plan);
absl::StatusOr<CalibrationPlan> ParsePlan(std::string_view text);

// The arms of a plan, each of the plan's variant; the empty kernel is none of them.
std::vector<PlannedArm> ArmsOf(const CalibrationPlan& plan);

// What a worker of a calibration measures.
absl::StatusOr<PlannedDesign> CalibrationDesign(std::string_view text);

}  // namespace warpledger::ablations
