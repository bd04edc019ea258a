// SPDX-License-Identifier: Apache-2.0
// `warpledger call`: one call of a variant, for Nsight Compute, which `profile` starts with it.

#include <memory>
#include <string>

#include "ablations/cli/flags.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/profile.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

struct CallFlags : FlagSet {
  Flag<std::string> record{this, "record", "", "a record of profiles, which says on what"};
  Flag<std::string> variant{this, "variant", "", "a printed configuration"};
  Flag<std::string> shape{this, "shape", "", "one of the record's"};
};

absl::StatusOr<int> CallOnce(const CallFlags& flags) {
  ASSIGN_OR_RETURN(const ablations::ProfileRecord record, ablations::LoadProfiles(*flags.record));
  const ablations::ProfileInfo& info = record.info;
  const auto shape =
      absl::c_find_if(info.shapes, [&](const auto& each) { return each.name == *flags.shape; });
  if (shape == info.shapes.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the record has no shape '", *flags.shape, "'"));
  }
  ASSIGN_OR_RETURN(
      const ablations::Subject* subject,
      ablations::FindSubject(info.subject.empty() ? ablations::kFirstSubject : info.subject,
                             info.definition));
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(*subject));
  ASSIGN_OR_RETURN(const std::unique_ptr<ablations::Bench> bench,
                   device.rig->Open(*shape, {.kind = subject->InputKinds().front(),
                                             .seeds = {info.seed},
                                             .rotation = 1,
                                             .sample_seed = info.seed}));
  ablations::PlannedArm arm;
  arm.name = arm.config = *flags.variant;
  ASSIGN_OR_RETURN(const std::unique_ptr<ablations::BenchVariant> variant, bench->Bind(arm, ""));
  if (variant == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no variant '", *flags.variant, "' on ", shape->name));
  }
  RETURN_IF_ERROR(variant->Prepare());
  RETURN_IF_ERROR(bench->BeforeVariant(variant.get()));
  // Loads the code and raises its limits; counters are of a right result alone.
  ASSIGN_OR_RETURN(const ablations::Check check, variant->CheckCall());
  if (!check.correct) {
    return absl::FailedPreconditionError(
        absl::StrCat("the result of ", *flags.variant, " is wrong: ", check.reason));
  }
  RETURN_IF_ERROR(variant->Call(0, nullptr));  // warms the L2
  RETURN_IF_ERROR(device.machine->MarkForProfiler(true));
  RETURN_IF_ERROR(variant->Call(0, nullptr));
  RETURN_IF_ERROR(device.machine->MarkForProfiler(false));
  return kExitOk;
}

}  // namespace

Command CallCommand() {
  return Runs(&CallOnce, {.name = "call",
                          .arguments = "",
                          .summary = "Calls a variant for `profile`, which starts it",
                          .hidden = true});
}

}  // namespace warpledger::cli
