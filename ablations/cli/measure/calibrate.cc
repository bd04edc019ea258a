// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/measure/calibrate.h"

#include <algorithm>

#include "ablations/base/files.h"
#include "ablations/cli/measure/run_request.h"
#include "ablations/measure/calibrate.h"
#include "ablations/plan/job.h"
#include "ablations/plan/known_subjects.h"
#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

// "0.5%x4,2%x10"
absl::StatusOr<std::vector<ablations::Plant>> ParsePlants(const std::string& text) {
  std::vector<ablations::Plant> plants;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> sides =
        absl::StrSplit(part, absl::MaxSplits("%x", 1));
    ablations::Plant plant;
    if (!absl::SimpleAtod(sides.first, &plant.percent) ||
        !absl::SimpleAtoi(sides.second, &plant.arms) || !(plant.percent > 0) ||
        !(plant.percent < 100) || plant.arms < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--plants: '", std::string(part), "' is no plant; ten arms slowed by 2% are 2%x10"));
    }
    plants.push_back(plant);
  }
  return plants;
}

// What `run` without flags corrects for: every step of the ladder on every shape of it.
int DefaultFamilySize(const ablations::PlannedDesign& ladder, size_t shapes) {
  return static_cast<int>(shapes) *
         static_cast<int>(absl::c_count_if(ladder.arms, [](const ablations::PlannedArm& arm) {
           return arm.role == ablations::kRoleStep;
         }));
}

std::string LastStep(const ablations::PlannedDesign& ladder) {
  std::string last;
  for (const ablations::PlannedArm& arm : ladder.arms) {
    if (arm.role == ablations::kRoleStep) last = arm.name;
  }
  return last;
}

}  // namespace

absl::StatusOr<int> Calibrate(const CalibrateFlags& flags) {
  RETURN_IF_ERROR(CheckReleaseBuild());
  ablations::CalibrateOptions options;
  ASSIGN_OR_RETURN(const ablations::Subject* found, ablations::FindSubject(*flags.subject));
  const ablations::Subject& subject = *found;
  ASSIGN_OR_RETURN(const ablations::PlannedDesign ladder, subject.FindDesign("ladder"));
  ASSIGN_OR_RETURN(const std::vector<ablations::ShapeInfo> of_ladder,
                   subject.ParseProblems("ladder"));
  const std::string variant = flags.variant.given ? *flags.variant : LastStep(ladder);
  ASSIGN_OR_RETURN(options.plan.variant, subject.FindVariant(variant));
  ASSIGN_OR_RETURN(options.shapes, subject.ParseProblems(*flags.shape));
  if (options.shapes.size() != 1) return absl::InvalidArgumentError("--shape: name one shape");
  options.design = ablations::kCalibrateDesign;
  ASSIGN_OR_RETURN(auto plants, ParsePlants(*flags.plants));
  options.plan.plants = std::move(plants);
  RETURN_IF_ERROR(ReadSampling(flags.sampling, &options));
  options.plan.trial_processes = options.processes;
  options.plan.family_size = DefaultFamilySize(ladder, of_ladder.size());
  // What is beyond the limit is refused below; its double may be no int.
  options.plan.null_arms = 2 * std::clamp(*flags.aa_pairs, 0, ablations::kMostCalibrationArms);
  options.plan.aa_family = *flags.aa_family;
  if (options.plan.trial_processes < 2 || options.plan.null_arms < 2 || *flags.groups < 1 ||
      options.plan.aa_family < 1) {
    return absl::InvalidArgumentError(
        "--aa_pairs, --aa_family and --groups must be positive, --processes at least 2");
  }
  if (int64_t{*flags.groups} * options.processes > ablations::kMostProcesses) {
    return absl::InvalidArgumentError(
        absl::StrCat("--groups times --processes may be ", ablations::kMostProcesses, " at most"));
  }
  options.processes *= *flags.groups;
  RETURN_IF_ERROR(ablations::CheckPlan(options.plan));
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  options.out_dir = *flags.out;
  options.argv = CommandLine();
  options.worker = {ablations::ExecutablePath(), "worker"};
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(subject));
  RETURN_IF_ERROR(ablations::Calibrate(options, subject, *device.rig, *device.machine));
  absl::PrintF("Record: %s\nNext: warpledger judge --record=%s\n", options.out_dir,
               options.out_dir);
  return kExitOk;
}

}  // namespace warpledger::cli
