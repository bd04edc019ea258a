// SPDX-License-Identifier: Apache-2.0
// `warpledger ratchet`: what this build's kernels need against a baseline, without a GPU.

#include "ablations/judge/compare/ratchet.h"

#include <cstdio>

#include "ablations/base/paths.h"
#include "ablations/cli/flags.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/plan.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/rules/families.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

struct RatchetFlags : FlagSet {
  Flag<std::string> baseline{this, "baseline", "", kBaselineHelp};
  Flag<std::string> waivers{this, "waivers", "",
                            "file of growths that are let through, each with its reason"};
  FormatFlag format{this};
};

// This very build's kernels, from the compile that was linked.
absl::StatusOr<ablations::BuildFacts> FactsOfThisBuild() {
  const absl::StatusOr<std::string> resources =
      ablations::FindProgramFile(absl::StrCat("codegen/", ablations::kResourcesFile));
  if (!resources.ok()) {
    return absl::NotFoundError(absl::StrCat(
        "this build holds no kernels, so it has no resources to compare: ",
        std::string(resources.status().message()), ". Build with nvcc (see README.md)"));
  }
  ASSIGN_OR_RETURN(ablations::BuildFacts facts, ablations::LoadBaselineFacts(*resources));
  facts.name = "this build";
  facts.nvcc = build_info::kNvcc;
  facts.cuda_flags = build_info::kCudaFlags;
  for (const sdpa::Config& config : ablations::AllInstanceConfigs()) {
    facts.dynamic_smem_bytes[sdpa::InstanceName(config)] = sdpa::GeometryOf(config).smem_bytes;
  }
  const absl::StatusOr<std::string> codegen =
      ablations::FindProgramFile(absl::StrCat("codegen/", ablations::kCodegenFile));
  if (!codegen.ok()) return facts;
  ASSIGN_OR_RETURN(const std::string text, ablations::ReadFile(*codegen));
  ASSIGN_OR_RETURN(facts.codegen, ablations::FromText<ablations::Codegen>(text));
  return facts;
}

absl::StatusOr<std::vector<ablations::Waiver>> ReadWaivers(const Flag<std::string>& file) {
  if (!file.given) return std::vector<ablations::Waiver>();
  ASSIGN_OR_RETURN(const std::string text, ablations::ReadFile(*file));
  return ablations::ParseWaivers(text);
}

absl::StatusOr<int> CompareResources(const RatchetFlags& flags) {
  ASSIGN_OR_RETURN(const bool json, flags.format.WantsJson());
  RETURN_IF_ERROR(
      flags.baseline.Needed("PATH is missing: a record's directory or a resources.json"));
  ASSIGN_OR_RETURN(const ablations::BuildFacts baseline,
                   ablations::LoadBaselineFacts(*flags.baseline));
  ASSIGN_OR_RETURN(const ablations::BuildFacts build, FactsOfThisBuild());
  ASSIGN_OR_RETURN(const std::vector<ablations::Waiver> waivers, ReadWaivers(flags.waivers));
  const ablations::Ratchet ratchet = ablations::RunRatchet(baseline, build, waivers);
  const std::string text =
      json ? ablations::DumpFile(ablations::RatchetJson(ratchet)) : ablations::RatchetText(ratchet);
  std::fputs(text.c_str(), stdout);
  return ratchet.exit;
}

}  // namespace

Command RatchetCommand() {
  return Runs(
      &CompareResources,
      {.name = "ratchet",
       .arguments = "--baseline=DIR|resources.json [--waivers=FILE] [--format=json]",
       .summary = "Fails when this build's kernels need more resources than a baseline's",
       .details =
           "Registers, spills, stack and shared memory, per variant and architecture; needs no "
           "GPU. Machine code that\nchanged is listed. A file of waivers has lines CONFIG ARCH "
           "RESOURCE LIMIT REASON.\n\nExit codes: 0 nothing grew; 1 something grew; 3 a kernel "
           "of the baseline is gone, or it could not run at all.",
       .exit_on_failure = ablations::kRatchetNotCompared});
}

}  // namespace warpledger::cli
