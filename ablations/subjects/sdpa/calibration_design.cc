// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/calibration_design.h"

#include <string>
#include <utility>

#include "ablations/plan/calibration_plan.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

absl::StatusOr<Design> CalibrationDesign(std::string_view text) {
  const absl::StatusOr<CalibrationPlan> plan = ParsePlan(text);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<NamedVariant> variant = FindVariant(plan->variant);
  if (!variant.ok()) return variant.status();
  Design design = {
      .name = std::string(text),
      .label = absl::StrCat("the same kernel many times, some with a known delay: ", plan->variant),
      .arms = {}};
  for (PlannedArm& arm : ArmsOf(*plan)) {
    design.arms.push_back({.name = std::move(arm.name),
                           .config = variant->config,
                           .role = std::move(arm.role),
                           .toggle = "",
                           .base = std::move(arm.base),
                           .spin_cycles = arm.spin_cycles,
                           .spin_alone = arm.spin_alone});
  }
  return design;
}

}  // namespace warpledger::ablations
