// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/calibration_plan.h"

#include <set>

#include "ablations/plan/job.h"
#include "ablations/record/record.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

// "4x" of "4x@120" and the like: what stands before `end`, as a number.
template <typename Number, typename Parse>
bool TakeNumber(absl::string_view* text, absl::string_view end, Parse parse, Number* number) {
  const size_t at = text->find(end);
  if (at == absl::string_view::npos || !parse(text->substr(0, at), number)) return false;
  text->remove_prefix(at + end.size());
  return true;
}

bool ParsePlant(absl::string_view text, Plant* plant) {
  return TakeNumber(
             &text, "%x", [](auto t, double* n) { return absl::SimpleAtod(t, n); },
             &plant->percent) &&
         TakeNumber(
             &text, "@", [](auto t, int* n) { return absl::SimpleAtoi(t, n); }, &plant->arms) &&
         absl::SimpleAtoi(text, &plant->cycles) && plant->percent > 0 && plant->percent < 100 &&
         plant->arms > 0 && plant->cycles > 0;
}

std::string Numbered(const std::string& name, int number) {
  return absl::StrFormat("%s:%02d", name, number);
}

}  // namespace

std::string SizeText(const Plant& plant) { return absl::StrCat(plant.percent, "%"); }

std::string PlanText(const CalibrationPlan& plan) {
  std::string text = absl::StrCat(
      "calibrate:", plan.variant, ";processes=", plan.trial_processes, ";family=", plan.family_size,
      ";nulls=", plan.null_arms,
      plan.aa_family != 2 ? absl::StrCat(";aa_family=", plan.aa_family) : "", ";plants=");
  for (const Plant& plant : plan.plants) {
    absl::StrAppend(&text, &plant == plan.plants.data() ? "" : ",", plant.percent, "%x", plant.arms,
                    "@", plant.cycles);
  }
  return text;
}

absl::Status CheckPlan(const CalibrationPlan& plan) {
  const auto refuse = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("no calibration: ", why...));
  };
  if (plan.null_arms < 2 || plan.null_arms % 2 != 0) {
    return refuse(plan.null_arms, " null arms, which are no pairs");
  }
  if (plan.aa_family < 1) return refuse("A/A families of ", plan.aa_family, " trials");
  int64_t arms = plan.null_arms;
  std::set<std::string> sizes;  // as the names of arms print them
  for (const Plant& plant : plan.plants) {
    const std::string size = SizeText(plant);
    if (!sizes.insert(size).second) return refuse("two plants of ", size);
    if (plant.arms > plan.null_arms) {
      return refuse(plant.arms, " arms slowed by ", size, " need as many null arms, not ",
                    plan.null_arms);
    }
    arms += plant.arms + int64_t{1};
  }
  if (arms <= kMostCalibrationArms) return absl::OkStatus();
  return refuse("it has ", arms, " arms; ", kMostCalibrationArms, " are the most");
}

absl::StatusOr<CalibrationPlan> ParsePlan(std::string_view text) {
  const absl::Status malformed = absl::InvalidArgumentError(
      absl::StrCat("'", Text(text),
                   "' is no calibration; one reads "
                   "calibrate:VARIANT;processes=5;family=35;nulls=40;plants=2%x10@40000"));
  if (!IsCalibration(text)) return malformed;
  const std::vector<std::string> parts = absl::StrSplit(Text(text.substr(10)), ';');
  if (parts.size() < 5 || parts.size() > 6 || parts[0].empty()) return malformed;
  CalibrationPlan plan;
  plan.variant = parts[0];
  const auto number = [](absl::string_view part, absl::string_view key, int* value) {
    return absl::ConsumePrefix(&part, key) && absl::SimpleAtoi(part, value) && *value > 0;
  };
  if (parts.size() == 6 && !number(parts[4], "aa_family=", &plan.aa_family)) return malformed;
  absl::string_view plants = parts.back();
  if (!number(parts[1], "processes=", &plan.trial_processes) ||
      !number(parts[2], "family=", &plan.family_size) ||
      !number(parts[3], "nulls=", &plan.null_arms) || !absl::ConsumePrefix(&plants, "plants=")) {
    return malformed;
  }
  for (const absl::string_view part : absl::StrSplit(plants, ',', absl::SkipEmpty())) {
    if (!ParsePlant(part, &plan.plants.emplace_back())) return malformed;
  }
  RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

std::vector<PlannedArm> ArmsOf(const CalibrationPlan& plan) {
  std::vector<PlannedArm> arms;
  for (int i = 0; i < plan.null_arms; ++i) {
    const bool partner = i % 2 == 1;
    arms.push_back({.name = Numbered("null", i),
                    .config = plan.variant,
                    .role = partner ? "aa" : "base",
                    .base = partner ? Numbered("null", i - 1) : ""});
  }
  int next_null = 0;
  for (const Plant& plant : plan.plants) {
    const std::string size = SizeText(plant);
    for (int i = 0; i < plant.arms; ++i) {
      arms.push_back({.name = Numbered(absl::StrCat("planted_", size), i),
                      .config = plan.variant,
                      .role = kRolePlanted,
                      .base = Numbered("null", next_null),
                      .spin_cycles = plant.cycles});
      next_null = (next_null + 1) % plan.null_arms;
    }
    arms.push_back({.name = absl::StrCat("delay_", size),
                    .role = kRoleDelay,
                    .spin_cycles = plant.cycles,
                    .spin_alone = true});
  }
  return arms;
}

absl::StatusOr<PlannedDesign> CalibrationDesign(std::string_view text) {
  ASSIGN_OR_RETURN(const CalibrationPlan plan, ParsePlan(text));
  return PlannedDesign{
      .name = std::string(text),
      .label = absl::StrCat("the same kernel many times, some with a known delay: ", plan.variant),
      .arms = ArmsOf(plan),
      .floors = {kFloorArm},
      .peers = false};
}

}  // namespace warpledger::ablations
