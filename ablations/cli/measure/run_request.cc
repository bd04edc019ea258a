// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/measure/run_request.h"

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/plan/job.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/plan/stopping.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"
#include "warpledger_build_info.h"

namespace warpledger::cli {
namespace {

absl::Status CheckKnown(const char* kind, const std::string& name,
                        const std::vector<std::string>& known) {
  if (absl::c_linear_search(known, name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--plant: there is no ", kind, " '", name, "'; ",
                   known.empty() ? "this subject has none"
                                 : absl::StrCat("known are ", absl::StrJoin(known, ", "))));
}

// "trap@ladder:wmma_pv@mission_b,spin@…": fault, arm and, if not on all, shape.
absl::StatusOr<std::vector<ablations::PlantedFault>> ParsePlants(
    const std::string& text, const ablations::Subject& subject,
    const std::vector<std::string>& arms, const std::vector<std::string>& shapes) {
  std::vector<ablations::PlantedFault> plants;
  if (text.empty()) return plants;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> fields = absl::StrSplit(part, '@');
    if (fields.size() < 2 || fields.size() > 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is no FAULT@ARM or FAULT@ARM@SHAPE"));
    }
    plants.push_back({fields[0], fields[1], fields.size() == 3 ? fields[2] : ""});
    RETURN_IF_ERROR(CheckKnown("fault", plants.back().fault, subject.Faults()));
    RETURN_IF_ERROR(CheckKnown("arm", plants.back().arm, arms));
    if (fields.size() == 3) RETURN_IF_ERROR(CheckKnown("shape", plants.back().shape, shapes));
  }
  return plants;
}

// Reads --alone and what goes with it; processes and blocks have its defaults then.
absl::Status ReadAlone(const RunFlags& flags, const ablations::Subject& subject,
                       ablations::RunOptions* options) {
  if (!*flags.alone) {
    if (!flags.settle_s.given && !flags.window_s.given) return absl::OkStatus();
    return absl::InvalidArgumentError("--settle_s and --window_s are for --alone");
  }
  if (!subject.Worker().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--alone: the worker of subject '", std::string(subject.name()), "' times in turn only"));
  }
  if (flags.stop.given) {
    return absl::InvalidArgumentError("--stop is for arms in turn; leave it or --alone out");
  }
  if (!flags.sampling.processes.given) options->processes = 4;
  if (!flags.sampling.blocks.given) options->blocks = 1;
  if (options->processes * int64_t{options->blocks} % 2 != 0) {
    return absl::InvalidArgumentError(
        "--alone: --processes times --blocks must be even, as each second round is the mirror of "
        "the one before it");
  }
  options->alone = {.settle_s = *flags.settle_s, .window_s = *flags.window_s};
  const auto is_time = [](double s) { return s >= 0 && s <= 60; };
  if (!is_time(*flags.settle_s) || !is_time(*flags.window_s)) {
    return absl::InvalidArgumentError("--settle_s and --window_s are seconds, 60 at most");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunRequest> RunRequestOf(const RunFlags& flags) {
  RunRequest request;
  ablations::RunOptions& options = request.options;
  if (flags.study.given + flags.callables.given + flags.subject.given > 1) {
    return absl::InvalidArgumentError(
        "--study and --callables are subjects of their own: name one, and leave --subject out");
  }
  const std::string design = flags.design.given ? *flags.design : "";
  ASSIGN_OR_RETURN(request.subject, flags.study.given
                                        ? ablations::SubjectIn("study", *flags.study, design)
                                    : flags.callables.given
                                        ? ablations::SubjectIn("python", *flags.callables, design)
                                        : ablations::FindSubject(*flags.subject));
  options.design = design.empty() ? request.subject->DefaultDesign() : design;
  ASSIGN_OR_RETURN(request.design, request.subject->FindDesign(options.design));
  ASSIGN_OR_RETURN(const std::string problems, flags.problems.List());
  ASSIGN_OR_RETURN(options.shapes, request.subject->ParseProblems(problems));
  options.out_dir = *flags.out;
  RETURN_IF_ERROR(ReadSampling(flags.sampling, &options));
  RETURN_IF_ERROR(ReadAlone(flags, *request.subject, &options));
  options.arm_limit_s = *flags.arm_limit_s;
  if (options.arm_limit_s < 1) {
    return absl::InvalidArgumentError("--arm_limit_s must be positive");
  }
  options.cache = *flags.cache;
  if (options.cache != ablations::kCacheWarm && options.cache != ablations::kCacheCold) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cache=", options.cache, ": it is warm or cold"));
  }
  ASSIGN_OR_RETURN(auto stopping, ablations::ParseStopping(*flags.stop, options.processes));
  options.stopping = std::move(stopping);
  std::vector<std::string> arms;
  for (const ablations::PlannedArm& arm : request.design.arms) arms.push_back(arm.name);
  std::vector<std::string> shape_names;
  for (const ablations::ShapeInfo& shape : options.shapes) shape_names.push_back(shape.name);
  ASSIGN_OR_RETURN(auto planted, ParsePlants(*flags.plant, *request.subject, arms, shape_names));
  options.planted = std::move(planted);
  const std::string& peers = *flags.peers;
  const std::vector<std::string> all = request.subject->Peers();
  if (peers == "auto") {
    options.peers = request.subject->PeersUnasked();
  } else if (peers != "off") {
    options.peers = absl::StrSplit(peers, ',');
  }
  const std::set<std::string> different(options.peers.begin(), options.peers.end());
  const bool known = absl::c_all_of(
      different, [&](const std::string& peer) { return absl::c_linear_search(all, peer); });
  if (!known || different.size() != options.peers.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--peers=", peers, ": it is ",
        all.empty() ? "auto or off, as this subject has no peers"
                    : absl::StrCat("auto, off, or some of ", absl::StrJoin(all, ","))));
  }
  if (flags.record.given && !*flags.dry_run) {
    return absl::InvalidArgumentError(
        "--record is for --dry_run: times of an earlier record, for the estimate; a run writes to "
        "--out");
  }
  options.python = flags.python.Interpreter();
  options.argv = CommandLine();
  return request;
}

absl::Status ReadSampling(const SamplingFlags& flags, ablations::RunOptions* options) {
  options->processes = *flags.processes;
  options->blocks = *flags.blocks;
  options->seed = *flags.seed;
  options->replay_us = *flags.replay_us;
  options->max_launches = *flags.max_launches;
  options->silence_limit_s = *flags.silence_limit_s;
  // Written so that NaN is refused too.
  const bool replay_is_a_time = options->replay_us > 0 && options->replay_us <= kMostReplayUs;
  if (options->processes < 1 || options->blocks < 1 || !replay_is_a_time ||
      options->silence_limit_s < 1 || options->max_launches < ablations::kInputSets) {
    return absl::InvalidArgumentError(
        absl::StrCat("--processes, --blocks, --replay_us and --silence_limit_s must be positive, "
                     "--replay_us at most 6e7 (a minute), --max_launches at least ",
                     ablations::kInputSets));
  }
  if (options->processes > ablations::kMostProcesses || options->blocks > ablations::kMostBlocks) {
    return absl::InvalidArgumentError(absl::StrCat("--processes may be ", ablations::kMostProcesses,
                                                   " at most, --blocks ", ablations::kMostBlocks));
  }
  return absl::OkStatus();
}

absl::Status CheckReleaseBuild() {
  if (std::strcmp(build_info::kBuildType, "Release") == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this is a ", build_info::kBuildType,
                   " build; times are taken from Release builds only (cmake --preset release)"));
}

absl::Status CheckCompiled(const RunRequest& request) {
  const std::optional<ablations::CodeOfDesign> code = request.subject->CodeOf(request.design);
  if (!code || !code->any || code->missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "design '", request.design.name, "': this build lacks ", code->missing.size(),
      " of its kernels, ", code->missing.front(),
      " among them; `warpledger run --dry_run` names all. To build them: ", code->how_to_build));
}

}  // namespace warpledger::cli
