// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablations/cli/measure/run_request.h"
#include "ablations/judge/factorial/attribute.h"
#include "ablations/plan/estimate.h"
#include "ablations/plan/job.h"
#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/common/parallel.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

std::string Duration(double seconds) {
  return seconds < 120 ? absl::StrFormat("%.0f s", seconds)
                       : absl::StrFormat("%.0f min", seconds / 60);
}

// An H200's. A run asks its GPU, which a dry run does without.
constexpr int64_t kSupposedL2Bytes = int64_t{60} << 20;

// What is known before the run: of the record in --out, and of the one in --record.
struct Known {
  std::set<ablations::BlockKey> done;
  ablations::KnownTimes times;
  int64_t l2_bytes = 0;  // 0: no record says it
};

absl::StatusOr<Known> LoadKnown(const ablations::RunOptions& options, const std::string& earlier) {
  Known known;
  RETURN_IF_ERROR(ablations::RefusePacked(options.out_dir));
  if (!options.out_dir.empty() && ablations::HasRecord(options.out_dir)) {
    ASSIGN_OR_RETURN(const ablations::Record record, ablations::LoadRecord(options.out_dir));
    if (record.run.design != options.design) {
      return absl::FailedPreconditionError(
          absl::StrCat(options.out_dir, " holds a run of design '", record.run.design,
                       "'; a run of another needs a directory of its own: name it with --out"));
    }
    known.done = ablations::CompletedOurs(record);
    known.times = ablations::TimesIn(record);
    known.l2_bytes = record.run.gpu.l2_bytes;
  }
  if (earlier.empty()) return known;
  ASSIGN_OR_RETURN(const ablations::Record record, ablations::LoadRecord(earlier));
  if (record.run.cache != options.cache) {
    return absl::InvalidArgumentError(absl::StrCat(earlier,
                                                   " was measured with --cache=", record.run.cache,
                                                   ", this would run with ", options.cache,
                                                   "; times of one say nothing of "
                                                   "the other"));
  }
  known.times.merge(ablations::TimesIn(record));
  if (known.l2_bytes == 0) known.l2_bytes = record.run.gpu.l2_bytes;
  return known;
}

void PrintCells(const RunRequest& request) {
  const std::vector<ablations::InfeasibleCell> infeasible =
      request.subject->Infeasible(request.design.name)
          .value_or(std::vector<ablations::InfeasibleCell>());
  const ablations::DesignKind kind = request.subject->KindOf(request.design.name);
  if (kind == ablations::DesignKind::kFactorial || kind == ablations::DesignKind::kFractional) {
    int cells = 0;
    for (const ablations::PlannedArm& arm : request.design.arms) {
      cells += arm.role != ablations::kRoleAa && arm.role != ablations::kRoleNull ? 1 : 0;
    }
    absl::PrintF("Cells: %d of %d that it spans\n", cells, cells + infeasible.size());
  }
  if (infeasible.empty()) return;
  absl::PrintF("Combinations that the rules forbid, so never timed: %d\n", infeasible.size());
  for (const ablations::InfeasibleCell& cell : infeasible) {
    absl::PrintF("  %s (%s)\n", cell.name, cell.Reason());
  }
}

void PrintAliases(const RunRequest& request) {
  if (request.subject->KindOf(request.design.name) != ablations::DesignKind::kFractional) return;
  std::vector<ablations::Arm> arms;
  for (const ablations::PlannedArm& arm : request.design.arms) arms.push_back(arm.Recorded());
  const auto aliases = ablations::AliasWarnings(ablations::FindFraction(*request.subject, arms));
  if (!aliases.ok()) {
    absl::PrintF("Main effects: none, %s; toggles that others need leave more cells behind '@'\n",
                 aliases.status().message());
    return;
  }
  absl::PrintF("Main effects aliased with interactions of two: %d\n", aliases->size());
  for (const std::string& line : *aliases) absl::PrintF("  %s\n", line);
}

void PrintConditions(const ablations::RunOptions& options, int64_t l2_bytes) {
  if (options.cache == ablations::kCacheCold) {
    absl::PrintF(
        "Cache: cold, of an L2 of %d MiB; a run asks its GPU, and refuses shapes that take more "
        "than %d input sets for it\n",
        l2_bytes >> 20, ablations::kMaxRotation);
  } else {
    absl::PrintF("Cache: warm\n");
  }
  if (!options.stopping) return;
  absl::PrintF(
      "Looks: after %s processes; a shape ends at the first at which every interval there "
      "is within %.3g%% of its ratio\n",
      absl::StrJoin(options.stopping->looks, ", "), 100 * options.stopping->half_width);
}

}  // namespace

absl::StatusOr<int> DryRun(const RunRequest& request, const std::string& earlier) {
  const ablations::RunOptions& options = request.options;
  const ablations::RunPlan plan = {.design = request.design,
                                   .shapes = options.shapes,
                                   .processes = options.processes,
                                   .blocks = options.blocks,
                                   .replay_us = options.replay_us,
                                   .max_launches = options.max_launches,
                                   .alone = options.alone,
                                   .cpu_cores = UsableCores()};
  ASSIGN_OR_RETURN(const Known known, LoadKnown(options, earlier));
  const int64_t l2_bytes = known.l2_bytes > 0 ? known.l2_bytes : kSupposedL2Bytes;
  for (const ablations::ShapeInfo& shape : options.shapes) {
    RETURN_IF_ERROR(ablations::CheckRotation(shape, options.cache, l2_bytes));
    // Code that this build lacks counts as there: the last lines say how to build it.
    RETURN_IF_ERROR(request.subject->CheckMeasurable(request.design, shape));
  }
  const ablations::RunEstimate estimate = ablations::EstimateRun(plan, known.done, known.times);

  absl::PrintF("Design %s: %s\n", plan.design.name, plan.design.label);
  PrintCells(request);
  absl::PrintF("Arms: %d, of %d distinct kernels%s\n", estimate.arms, estimate.kernels,
               options.alone ? ", each alone" : "; the empty kernel is one of the arms");
  PrintAliases(request);
  std::vector<std::string> names;
  for (const ablations::ShapeInfo& shape : plan.shapes) names.push_back(shape.name);
  absl::PrintF("Shapes: %s\n", absl::StrJoin(names, ", "));
  absl::PrintF("Samples: %d = %d processes x %d shapes x %d blocks x %d arms\n", estimate.samples,
               plan.processes, plan.shapes.size(), plan.blocks, estimate.arms);
  PrintConditions(options, l2_bytes);
  if (!options.out_dir.empty()) {
    absl::PrintF("Record %s: %d of %d %s are there\n", options.out_dir, estimate.blocks_done,
                 estimate.blocks, options.alone ? "visits" : "blocks");
  }
  absl::PrintF("Left: %d samples, about %s%s with %d CPU cores\n", estimate.samples_left,
               Duration(estimate.seconds_left),
               estimate.times_known == estimate.times ? "" : " at least", plan.cpu_cores);
  absl::PrintF(
      "Times: %d of %d, one per arm and shape, are known from records%s; peers and checks "
      "add to it\n",
      estimate.times_known, estimate.times,
      estimate.times_known == estimate.times
          ? ""
          : "; the others count as --replay_us a sample, which slow kernels exceed");

  const std::optional<ablations::CodeOfDesign> code = request.subject->CodeOf(request.design);
  if (!code) return kExitOk;
  if (!code->any) {
    absl::PrintF("Kernels: none, this is a build without CUDA\n");
    return kExitOk;
  }
  if (code->missing.empty()) {
    absl::PrintF("Kernels: this build holds all of them\n");
    return kExitOk;
  }
  absl::PrintF("Kernels: this build lacks %d of them\n", code->missing.size());
  for (const std::string& name : code->missing) absl::PrintF("  %s\n", name);
  absl::PrintF("To build them: %s\n", code->how_to_build);
  return kExitFinding;
}

}  // namespace warpledger::cli
