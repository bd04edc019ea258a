// SPDX-License-Identifier: Apache-2.0
// What `warpledger run` was asked for. The one place that refuses what can't be run,
// for a run and for --dry_run alike.

#pragma once

#include "ablations/cli/measure/run.h"
#include "ablations/measure/run.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/plan/subject.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct RunRequest {
  const ablations::Subject* subject = nullptr;
  ablations::PlannedDesign design;
  ablations::RunOptions options;  // out_dir may be empty: a dry run needs none
};

// InvalidArgument names the flag that can't be and what it may be.
absl::StatusOr<RunRequest> RunRequestOf(const RunFlags& flags);

// Reads the flags into `options`, and refuses what can't be.
absl::Status ReadSampling(const SamplingFlags& flags, ablations::RunOptions* options);

// Times are taken from Release builds only.
absl::Status CheckReleaseBuild();

// InvalidArgument where this build lacks kernels that the request needs: how to build them.
absl::Status CheckCompiled(const RunRequest& request);

// Into request.options.out_dir.
absl::Status Measure(RunRequest request, const ablations::Device& device);

// Of `run --dry_run`: prints what the run would take and what its record would hold, refused where
// a run would be; needs no GPU and writes nothing. `earlier`: a record whose times the estimate
// goes by; may be empty. Returns the exit code: kExitFinding when a build with CUDA lacks a kernel.
absl::StatusOr<int> DryRun(const RunRequest& request, const std::string& earlier);

}  // namespace warpledger::cli
