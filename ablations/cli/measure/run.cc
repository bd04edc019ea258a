// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/measure/run.h"

#include <set>

#include "ablations/cli/measure/dry_run.h"
#include "ablations/cli/measure/run_request.h"
#include "ablations/measure/run.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/launch.h"

namespace warpledger::cli {
namespace {

// A specialised configuration.
bool IsCompiled(const sdpa::Config& config) {
  return absl::c_any_of(sdpa::AllInstances(), [&](const sdpa::KernelInstance* instance) {
    return instance->config == config;
  });
}

absl::Status CheckCompiled(const ablations::Design& design) {
  const std::set<std::string> missing = MissingKernels(design, &IsCompiled);
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "design '", design.name, "': this build lacks ", missing.size(), " of its kernels, ",
      *missing.begin(), " among them; `warpledger run --dry_run` names all. To build them: ",
      ablations::HowToBuild(design)));
}

}  // namespace

absl::StatusOr<int> Run(const RunFlags& flags) {
  if (*flags.dry_run) return DryRun(flags, &IsCompiled);
  RETURN_IF_ERROR(CheckReleaseBuild());
  ASSIGN_OR_RETURN(const RunRequest request, RunRequestOf(flags));
  RETURN_IF_ERROR(CheckCompiled(request.design));
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the record goes"));
  RETURN_IF_ERROR(ablations::RunDesign(request.options));
  absl::PrintF("Record: %s\nNext: warpledger judge --record=%s\n", *flags.out, *flags.out);
  return kExitOk;
}

}  // namespace warpledger::cli
