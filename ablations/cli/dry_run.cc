#include "ablations/cli/dry_run.h"

#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ablations/cli/command.h"
#include "ablations/cli/flags.h"
#include "ablations/estimate.h"
#include "ablations/fractional.h"
#include "ablations/fractional_effects.h"
#include "ablations/plan.h"
#include "ablations/store.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/sdpa/variant.h"

namespace warpledger::cli {
namespace {

std::string Duration(double seconds) {
  return seconds < 120 ? absl::StrFormat("%.0f s", seconds)
                       : absl::StrFormat("%.0f min", seconds / 60);
}

// The blocks that the record in --out holds; none without a record.
absl::StatusOr<std::set<ablations::BlockKey>> DoneBlocks(const std::string& out,
                                                         const std::string& design) {
  if (out.empty() || !ablations::HasRecord(out)) return std::set<ablations::BlockKey>{};
  absl::StatusOr<ablations::Record> record = ablations::LoadRecord(out);
  if (!record.ok()) return record.status();
  if (record->run.design != design) {
    return absl::FailedPreconditionError(
        absl::StrCat(out, " holds a run of design '", record->run.design,
                     "'; a run of another needs a directory of its own: name it with --out"));
  }
  return ablations::CompletedOurs(*record);
}

}  // namespace

absl::StatusOr<int> DryRun(const std::function<bool(const sdpa::Config&)>& holds) {
  ablations::RunPlan plan;
  absl::StatusOr<ablations::Design> design = ablations::FindDesign(absl::GetFlag(FLAGS_design));
  if (!design.ok()) return design.status();
  plan.design = *std::move(design);
  auto shapes = ablations::ParseShapes(absl::GetFlag(FLAGS_shapes));
  if (!shapes.ok()) return shapes.status();
  plan.shapes = *std::move(shapes);
  plan.processes = absl::GetFlag(FLAGS_processes);
  plan.blocks = absl::GetFlag(FLAGS_blocks);
  plan.replay_us = absl::GetFlag(FLAGS_replay_us);
  plan.cpu_cores = static_cast<int>(std::thread::hardware_concurrency());
  if (plan.processes < 1 || plan.blocks < 1 || !(plan.replay_us > 0) ||
      !std::isfinite(plan.replay_us)) {
    return absl::InvalidArgumentError("--processes, --blocks and --replay_us must be positive");
  }
  const std::string out = absl::GetFlag(FLAGS_out);
  const auto done = DoneBlocks(out, plan.design.name);
  if (!done.ok()) return done.status();
  const ablations::RunEstimate estimate = ablations::EstimateRun(plan, *done);

  std::printf("Design %s: %s\n", plan.design.name.c_str(), plan.design.label.c_str());
  std::printf("Arms: %d, of %d distinct kernels; the empty kernel is one of the arms\n",
              estimate.arms, estimate.kernels);
  if (!plan.design.infeasible.empty()) {
    std::printf("Combinations that the rules forbid, so never timed: %d\n",
                static_cast<int>(plan.design.infeasible.size()));
    for (const ablations::InfeasibleCell& cell : plan.design.infeasible) {
      std::printf("  %s (%s %s %s)\n", cell.name.c_str(), cell.toggle.c_str(),
                  cell.why.empty() ? "needs" : "can't go with", cell.missing.c_str());
    }
  }
  if (ablations::IsFractional(plan.design.name)) {
    std::vector<ablations::Arm> arms;
    for (const ablations::DesignArm& arm : plan.design.arms) {
      arms.push_back({arm.name, "", arm.role, "", ""});
    }
    const auto aliases = ablations::AliasWarnings(ablations::FindFraction(arms));
    if (aliases.ok()) {
      std::printf("Main effects aliased with interactions of two: %d\n",
                  static_cast<int>(aliases->size()));
      for (const std::string& line : *aliases) std::printf("  %s\n", line.c_str());
    } else {
      std::printf("Main effects: none, %s; toggles that others need leave more cells behind '@'\n",
                  std::string(aliases.status().message()).c_str());
    }
  }
  std::vector<std::string> names;
  for (const sdpa::NamedShape& shape : plan.shapes) names.emplace_back(shape.name);
  std::printf("Shapes: %s\n", absl::StrJoin(names, ", ").c_str());
  std::printf("Samples: %lld = %d processes x %d shapes x %d blocks x %d arms\n",
              static_cast<long long>(estimate.samples), plan.processes,
              static_cast<int>(plan.shapes.size()), plan.blocks, estimate.arms);
  if (!out.empty()) {
    std::printf("Record %s: %lld of %lld blocks are there\n", out.c_str(),
                static_cast<long long>(estimate.blocks_done),
                static_cast<long long>(estimate.blocks));
  }
  std::printf(
      "Left: %lld samples, about %s at least with %d CPU cores; slow kernels and peers add to it\n",
      static_cast<long long>(estimate.samples_left), Duration(estimate.seconds_left).c_str(),
      plan.cpu_cores);

  if (!holds) {
    std::printf("Kernels: none, this is a build without CUDA\n");
    return kExitOk;
  }
  std::set<std::string> missing;
  for (const ablations::DesignArm& arm : plan.design.arms) {
    for (const sdpa::Config& config : Specialisations(plan.design, arm)) {
      if (!holds(config)) missing.insert(sdpa::InstanceName(config));
    }
  }
  if (missing.empty()) {
    std::printf("Kernels: this build holds all of them\n");
    return kExitOk;
  }
  std::printf("Kernels: this build lacks %d of them\n", static_cast<int>(missing.size()));
  for (const std::string& name : missing) std::printf("  %s\n", name.c_str());
  return kExitFinding;
}

}  // namespace warpledger::cli
