// SPDX-License-Identifier: Apache-2.0
// `warpledger ratchet`: what this build's kernels, or a study's, need against a baseline, without a
// GPU.

#include "ablations/judge/compare/ratchet.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/cli/flags.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/plan.h"
#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/study_subject.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/rules/families.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

struct RatchetFlags : FlagSet {
  Flag<std::string> study{this, "study", "", kStudyHelp};
  Flag<std::string> baseline{this, "baseline", "", kBaselineHelp};
  Flag<std::string> waivers{this, "waivers", "", "file of allowed growths, each with its reason"};
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

// The study's variants as its files make them now: those of the baseline, whatever design it was
// of, and those that a run takes.
absl::StatusOr<ablations::BuildFacts> FactsOfStudy(const std::string& folder,
                                                   const ablations::BuildFacts& baseline) {
  ASSIGN_OR_RETURN(const ablations::StudyFile file, ablations::StudyFile::Load(folder));
  const auto subject = ablations::StudySubject::Of({.study = file.study});
  ASSIGN_OR_RETURN(std::vector<std::string> variants, subject->VariantsOf(""));
  for (const ablations::InstanceResources& instance : baseline.resources) {
    if (subject->IsVariant(instance.variant) &&
        !absl::c_linear_search(variants, instance.variant)) {
      variants.push_back(instance.variant);
    }
  }
  ASSIGN_OR_RETURN(ablations::StudyBuild build, ablations::BuildStudy(file, variants));
  ablations::BuildFacts facts;
  facts.name = absl::StrCat("study ", file.study.name);
  facts.nvcc = build.compiler;
  facts.cuda_flags = absl::StrJoin(file.study.flags, " ");
  facts.resources = std::move(build.resources.instances);
  facts.codegen = std::move(build.codegen);
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
  ASSIGN_OR_RETURN(ablations::BuildFacts baseline, ablations::LoadBaselineFacts(*flags.baseline));
  // What a commit before was is no part of a study's folder.
  std::erase_if(baseline.resources, [](const ablations::InstanceResources& each) {
    return each.variant.starts_with(ablations::kSinceVariant);
  });
  ASSIGN_OR_RETURN(const ablations::BuildFacts build,
                   flags.study.given ? FactsOfStudy(*flags.study, baseline) : FactsOfThisBuild());
  ASSIGN_OR_RETURN(const std::vector<ablations::Waiver> waivers, ReadWaivers(flags.waivers));
  const ablations::Ratchet ratchet = ablations::RunRatchet(baseline, build, waivers);
  const std::string text =
      json ? ablations::DumpFile(ablations::ToJson(ratchet)) : ablations::RatchetText(ratchet);
  std::fputs(text.c_str(), stdout);
  return ratchet.exit;
}

}  // namespace

Command RatchetCommand() {
  return Runs(
      &CompareResources,
      {.name = "ratchet",
       .arguments = "--baseline=DIR|resources.json [--study=DIR] [--waivers=FILE] [--format=json]",
       .summary =
           "Fails when kernels of this build, or of a study, need more resources than before",
       .details =
           "Compares registers, spills, stack and shared memory with a baseline, per variant and "
           "architecture; needs no GPU.\nLists changed machine code. A file of waivers has lines "
           "CONFIG ARCH RESOURCE LIMIT REASON.\n\nExit codes: 0 nothing grew; 1 something grew; 3 "
           "a "
           "kernel of the baseline is gone, or the command could not run.",
       .exit_on_failure = ablations::kRatchetNotCompared});
}

}  // namespace warpledger::cli
