// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/run.h"

#include <utility>

#include "ablations/base/files.h"
#include "ablations/measure/controller.h"
#include "ablations/plan/job.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"
#include "warpledger_build_info.h"
#include "warpledger_git_info.h"
#include "warpledger_source_hashes.h"

namespace warpledger::ablations {
namespace {

// Fills in the time of creation, and the run's name: `<what>-<time>`.
void DescribeNow(const std::string& what, RunInfo* run) {
  const absl::Time now = absl::Now();
  run->created_utc = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  run->run_id =
      absl::StrCat(what, "-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
}

// Fills in git, hashes and toolchain of this build.
void DescribeBuild(RunInfo* run) {
  run->git = {kGitSha, kGitDirty};
  run->registry_sha256 = kRegistrySha256;
  run->kernel_source_sha256 = kKernelSourceSha256;
  run->protocol_sha256 = WARPLEDGER_PROTOCOL_SHA256;
  run->toolchain = {build_info::kNvcc, build_info::kHostCompiler, build_info::kBuildType,
                    build_info::kCudaFlags, build_info::kCudaArchitectures};
}

}  // namespace

RunInfo DescribeRun(const RunOptions& options, const Subject& subject, const PlannedDesign& design,
                    GpuInfo gpu) {
  RunInfo run;
  run.subject = subject.name() == kFirstSubject ? "" : std::string(subject.name());
  run.definition.json = subject.Definition();
  const std::string name = options.name.empty()
                               ? absl::StrCat(options.alone ? "alone-" : "", options.design)
                               : options.name;
  DescribeNow(absl::StrCat(options.planted.empty() ? "" : "planted-", name), &run);
  run.gpu = std::move(gpu);
  run.design = options.design;
  run.family = options.design;
  run.argv = options.argv;
  run.seed = options.seed;
  run.processes = options.processes;
  run.blocks_per_process = options.blocks;
  run.cache = options.cache;
  run.replay_us = options.replay_us;
  run.max_launches = options.max_launches;
  run.alone = options.alone;
  run.stopping = options.stopping;
  run.planted = options.planted;
  run.shapes = options.shapes;
  for (const PlannedArm& arm : design.arms) run.arms.push_back(arm.Recorded());
  for (const std::string& floor : options.alone ? std::vector<std::string>() : design.floors) {
    run.arms.push_back({floor, "", kRoleFloor, "", ""});
  }
  if (design.peers) {
    for (const std::string& peer : options.peers) {
      run.arms.push_back({absl::StrCat(kPeerPrefix, peer), "", kRolePeer, "", ""});
    }
  }
  DescribeBuild(&run);
  return run;
}

absl::Status RunDesign(const RunOptions& options, const Subject& subject, const Rig& rig,
                       const Machine& machine) {
  ASSIGN_OR_RETURN(const PlannedDesign design, subject.FindDesign(options.design));
  ASSIGN_OR_RETURN(GpuInfo gpu, machine.Describe());
  for (const ShapeInfo& shape : options.shapes) {
    RETURN_IF_ERROR(subject.CheckMeasurable(design, shape));
    RETURN_IF_ERROR(CheckRotation(shape, options.cache, gpu.l2_bytes));
  }
  ControlledRun controlled;
  const int sm_count = gpu.sm_count;
  controlled.run = DescribeRun(options, subject, design, std::move(gpu));
  for (const ShapeInfo& shape : options.shapes) {
    if (!options.alone) break;
    std::string chosen = rig.ChosenFor(design, shape, sm_count);
    if (!chosen.empty()) controlled.run.chosen.emplace(shape.name, std::move(chosen));
  }
  controlled.out_dir = options.out_dir;
  controlled.worker = options.worker;
  controlled.known_peers = options.peers;
  if (!options.peers.empty() && design.peers) {
    const absl::StatusOr<std::string> program = FindProgramFile(subject.PeersProgram());
    if (program.ok()) {
      controlled.peers = {options.python, *program};
    } else {
      controlled.why_no_peers = std::string(program.status().message());
    }
  }
  controlled.replay_us = options.replay_us;
  controlled.max_launches = options.max_launches;
  controlled.silence_limit_s = options.silence_limit_s;
  controlled.arm_limit_s = options.arm_limit_s;
  controlled.write_build_facts = [&](const std::string& dir) {
    return rig.WriteEvidence(design, options.shapes, dir);
  };
  return RunControlled(controlled);
}

}  // namespace warpledger::ablations
