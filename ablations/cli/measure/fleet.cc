// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/measure/fleet.h"

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/base/json_text.h"
#include "ablations/cli/measure/run_request.h"
#include "ablations/judge/summarize.h"
#include "ablations/record/store.h"
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {
namespace {

namespace fs = std::filesystem;
using ablations::FleetTask;

constexpr char kScriptFile[] = "fleet.sbatch";

// Flags of `sbatch` on its command line take the place of these.
constexpr char kScript[] = R"(#!/bin/bash
#SBATCH --job-name=warpledger
#SBATCH --array=0-%d
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%s
# A task that is started again goes on where it was stopped, and one that is whole ends at once.
exec %s fleet --work=%s --task="$SLURM_ARRAY_TASK_ID"
)";

std::string InShell(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Of an option in a script: sbatch takes "…" together, and %a for the task's number.
std::string InOption(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"%", "%%"}}), "\"");
}

// A task's process may stand in another folder.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

absl::Status OnlyFor(const AnyFlag& flag, bool allowed, const char* where) {
  if (!flag.given || allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " is for ", where));
}

// --- Planning ------------------------------------------------------------------

// The flags of `warpledger run` that all tasks share.
std::vector<std::string> SharedFlags(const FleetFlags& flags) {
  RunFlags run;
  std::vector<std::string> shared;
  for (const AnyFlag* flag : flags.all) {
    const std::string name = flag->name;
    const bool of_run =
        absl::c_any_of(run.all, [&](const AnyFlag* each) { return name == each->name; });
    if (!flag->given || !of_run || name == "out" || name == "shapes" || name == "problem") continue;
    const bool is_path = name == "study" || name == "callables" ||
                         (name == "python" && absl::StrContains(flag->text, '/'));
    shared.push_back(absl::StrCat("--", name, "=", is_path ? Absolute(flag->text) : flag->text));
  }
  return shared;
}

absl::StatusOr<std::string> GroupOf(const FleetFlags& flags, const std::string& design) {
  std::string group = *flags.name;
  if (!flags.name.given) {
    group = design;
    absl::c_replace_if(
        group, [](char c) { return !absl::ascii_isalnum(static_cast<unsigned char>(c)); }, '_');
  }
  if (ablations::IsTaskName(group)) return group;
  return absl::InvalidArgumentError(
      absl::StrCat("--name=", group, ": it is ", ablations::kTaskName.Words()));
}

absl::StatusOr<std::vector<FleetTask>> TasksOf(const FleetFlags& flags, const RunRequest& request) {
  ASSIGN_OR_RETURN(const std::string group, GroupOf(flags, request.options.design));
  std::vector<std::string> shapes;
  for (const ablations::ShapeInfo& shape : request.options.shapes) shapes.push_back(shape.name);
  const int shards = *flags.shards;
  if (shards < 1 || shards > std::ssize(shapes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shards=", shards, ": a shard has a shape at least, and there are ", shapes.size()));
  }
  if (*flags.boards < 1 || *flags.boards > ablations::kMostTasks / shards) {
    return absl::InvalidArgumentError(absl::StrCat("--boards=", *flags.boards, ": it is from 1 to ",
                                                   ablations::kMostTasks / shards));
  }
  std::vector<FleetTask> tasks;
  for (int board = 0; board < *flags.boards; ++board) {
    for (int shard = 0; shard < shards; ++shard) {
      FleetTask task = {.name = group, .group = group, .shapes = {}, .flags = {}};
      if (shards > 1) absl::StrAppend(&task.name, "-s", shard);
      if (*flags.boards > 1) absl::StrAppend(&task.name, "-b", board);
      task.shapes = ablations::ShardOf<std::string>(shapes, shard, shards);
      task.flags = SharedFlags(flags);
      if (shards > 1) {
        task.flags.push_back(absl::StrCat("--shapes=", absl::StrJoin(task.shapes, ",")));
      } else if (const auto& given =
                     flags.problems.problem.given ? flags.problems.problem : flags.problems.shapes;
                 given.given) {
        task.flags.push_back(absl::StrCat("--", given.name, "=", given.text));
      }
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

// What a task asks `warpledger run` for.
absl::StatusOr<RunRequest> RequestOf(const FleetTask& task) {
  RunFlags flags;
  RETURN_IF_ERROR(SetFlags("run", task.flags, &flags));
  ASSIGN_OR_RETURN(RunRequest request, RunRequestOf(flags));
  std::vector<std::string> shapes;
  for (const ablations::ShapeInfo& shape : request.options.shapes) shapes.push_back(shape.name);
  if (shapes == task.shapes) {
    request.options.name = task.name;
    request.options.argv = {ablations::ExecutablePath(), "run"};
    absl::c_copy(task.flags, std::back_inserter(request.options.argv));
    return request;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(task.name, " was planned on ", absl::StrJoin(task.shapes, ","),
                   ", and its flags mean ", absl::StrJoin(shapes, ",")));
}

// The fleet with these tasks: those of the same name must be the same.
absl::StatusOr<ablations::Fleet> WithTasks(const std::string& dir,
                                           const std::vector<FleetTask>& tasks) {
  absl::StatusOr<ablations::Fleet> fleet = ablations::LoadFleet(dir);
  if (absl::IsNotFound(fleet.status())) fleet = ablations::Fleet{};
  RETURN_IF_ERROR(fleet.status());
  std::vector<FleetTask> of_group;
  std::set<std::string> names;
  for (const FleetTask& task : fleet->tasks) {
    names.insert(task.name);
    if (task.group == tasks[0].group) of_group.push_back(task);
  }
  if (of_group == tasks) return fleet;
  if (!of_group.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, ": '", tasks[0].group,
                     "' has other tasks there. Give these another --name, or take another folder"));
  }
  for (const FleetTask& task : tasks) {
    if (names.contains(task.name) || ablations::HasRecord(absl::StrCat(dir, "/", task.name))) {
      return absl::FailedPreconditionError(absl::StrCat(
          dir, "/", task.name, ": is there already and is none of these tasks; choose a --name"));
    }
    fleet->tasks.push_back(task);
  }
  if (std::ssize(fleet->tasks) <= ablations::kMostTasks) return fleet;
  return absl::InvalidArgumentError(
      absl::StrCat(dir, ": a fleet has ", ablations::kMostTasks, " tasks at most"));
}

absl::StatusOr<int> PlanFleet(const FleetFlags& flags) {
  RETURN_IF_ERROR(OnlyFor(flags.task, false, "--work"));
  RETURN_IF_ERROR(OnlyFor(flags.only, false, "--work"));
  RETURN_IF_ERROR(OnlyFor(flags.gpus, false, "--work"));
  RETURN_IF_ERROR(OnlyFor(flags.board, false, "--work"));
  RETURN_IF_ERROR(OnlyFor(flags.record, false, "`warpledger run --dry_run`"));
  RETURN_IF_ERROR(OnlyFor(flags.dry_run, false, "`warpledger run`"));
  RETURN_IF_ERROR(flags.out.Needed("DIR is missing: where the fleet and its records go"));
  ASSIGN_OR_RETURN(const RunRequest request, RunRequestOf(flags));
  RETURN_IF_ERROR(CheckReleaseBuild());
  RETURN_IF_ERROR(CheckCompiled(request));
  const std::string dir = Absolute(*flags.out);
  if (dir.find_first_of("\"\\\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(dir, ": Slurm takes no quote, backslash or newline in a path"));
  }
  if (ablations::HasRecord(dir)) {
    return absl::InvalidArgumentError(absl::StrCat(dir, ": is a record; name another folder"));
  }
  ASSIGN_OR_RETURN(const std::vector<FleetTask> tasks, TasksOf(flags, request));
  for (const FleetTask& task : tasks) RETURN_IF_ERROR(RequestOf(task).status());
  ASSIGN_OR_RETURN(const ablations::Fleet fleet, WithTasks(dir, tasks));
  RETURN_IF_ERROR(ablations::CreateDirectories(dir));
  const std::string script = absl::StrCat(dir, "/", kScriptFile);
  // The list goes first: a script never names a task that is not there.
  RETURN_IF_ERROR(ablations::WriteFileAtomically(absl::StrCat(dir, "/", ablations::kFleetFile),
                                                 ablations::DumpFile(ablations::ToJson(fleet))));
  RETURN_IF_ERROR(ablations::WriteFileAtomically(
      script, absl::StrFormat(kScript, std::ssize(fleet.tasks) - 1, InOption(dir) + "/slurm-%a.log",
                              InShell(ablations::ExecutablePath()), InShell(dir))));
  absl::PrintF("%d tasks of '%s', %d in all: %s/%s\n", tasks.size(), tasks[0].group,
               fleet.tasks.size(), dir, ablations::kFleetFile);
  absl::PrintF("On a cluster: sbatch %s\n", InShell(script));
  absl::PrintF("Here:         warpledger fleet --work=%s --gpus=N\n", InShell(dir));
  absl::PrintF("Then:         warpledger merge --fleet=%s --out=DIR\n", InShell(dir));
  return kExitOk;
}

// --- Working -------------------------------------------------------------------

absl::StatusOr<int> PrintBoard(const ablations::Fleet& fleet) {
  ASSIGN_OR_RETURN(const FleetTask* first, ablations::FindTask(fleet, "0"));
  ASSIGN_OR_RETURN(const RunRequest request, RequestOf(*first));
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(*request.subject));
  ASSIGN_OR_RETURN(const ablations::GpuInfo gpu, device.machine->Describe());
  absl::PrintF("%s\n", gpu.uuid);
  return kExitOk;
}

absl::StatusOr<int> MeasureTask(const std::string& dir, const FleetTask& task) {
  for (const std::string& record : ablations::RecordsOf(dir, task)) {
    const absl::StatusOr<ablations::Record> loaded = ablations::LoadRecord(record);
    if (!loaded.ok() || ablations::MissingBlocks(*loaded).value_or(1) > 0) continue;
    absl::PrintF("%s is whole: %s\n", task.name, record);
    return kExitOk;
  }
  RETURN_IF_ERROR(CheckReleaseBuild());
  ASSIGN_OR_RETURN(RunRequest request, RequestOf(task));
  RETURN_IF_ERROR(CheckCompiled(request));
  ASSIGN_OR_RETURN(const ablations::Device device, ablations::OpenDevice(*request.subject));
  ASSIGN_OR_RETURN(const ablations::GpuInfo gpu, device.machine->Describe());
  if (gpu.uuid.empty() || absl::StrContains(gpu.uuid, '/')) {
    return absl::FailedPreconditionError(
        absl::StrCat("this GPU's UUID, '", gpu.uuid, "', can't be a folder's name"));
  }
  request.options.out_dir = absl::StrCat(dir, "/", task.name, "/", gpu.uuid);
  absl::PrintF("%s on %s\n", task.name, gpu.uuid);
  std::fflush(stdout);
  RETURN_IF_ERROR(Measure(std::move(request), device));
  absl::PrintF("Record: %s/%s/%s\n", dir, task.name, gpu.uuid);
  return kExitOk;
}

// All, or those of the groups that the flag names.
absl::StatusOr<std::vector<const FleetTask*>> TasksNamed(const ablations::Fleet& fleet,
                                                         const Flag<std::string>& only) {
  std::vector<std::string> names;
  if (only.given) {
    ASSIGN_OR_RETURN(names, NamesIn(only));
  }
  std::vector<const FleetTask*> tasks;
  std::set<std::string> groups;
  for (const FleetTask& task : fleet.tasks) {
    groups.insert(task.group);
    if (!only.given || absl::c_linear_search(names, task.group)) tasks.push_back(&task);
  }
  for (const std::string& name : names) {
    if (groups.contains(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--only=", name, ": this fleet has ", absl::StrJoin(groups, ", ")));
  }
  return tasks;
}

absl::StatusOr<int> WorkOn(const FleetFlags& flags) {
  for (const AnyFlag* flag : flags.all) {
    const bool of_work = flag == &flags.work || flag == &flags.task || flag == &flags.only ||
                         flag == &flags.gpus || flag == &flags.board;
    RETURN_IF_ERROR(OnlyFor(*flag, of_work, "planning; a fleet keeps what it was planned with"));
  }
  if (flags.task.given + (flags.gpus.given || flags.only.given) + flags.board.given > 1) {
    return absl::InvalidArgumentError(
        "--task is one task, --only and --gpus are for several, and --board for none");
  }
  const std::string dir = Absolute(*flags.work);
  ASSIGN_OR_RETURN(const ablations::Fleet fleet, ablations::LoadFleet(dir));
  if (*flags.board) return PrintBoard(fleet);
  if (flags.task.given) {
    ASSIGN_OR_RETURN(const FleetTask* task, ablations::FindTask(fleet, *flags.task));
    return MeasureTask(dir, *task);
  }
  ASSIGN_OR_RETURN(const auto tasks, TasksNamed(fleet, flags.only));
  return WorkHere(dir, tasks, *flags.gpus);
}

}  // namespace

absl::StatusOr<int> Fleet(const FleetFlags& flags) {
  return flags.work.given ? WorkOn(flags) : PlanFleet(flags);
}

Command FleetCommand() {
  return Runs(
      &Fleet,
      {.name = "fleet",
       .arguments = "--out=DIR [--boards=N] [--shards=N] [flags of run] | --work=DIR [--gpus=N]",
       .summary = "Measures designs on many GPUs: a Slurm job array, or the GPUs here",
       .details =
           "--out writes DIR/fleet.json, the list of tasks, and DIR/fleet.sbatch, an array with "
           "one "
           "task per GPU. Flags of\n`sbatch` override those of the script: sbatch --partition=h200 "
           "--cpus-per-task=4 DIR/fleet.sbatch\nAnother call adds another design to DIR, under its "
           "own --name. A task may be killed, requeued or started twice:\nit continues on the same "
           "GPU, begins anew on another GPU, and ends at once if it is complete.\n--work runs the "
           "same tasks on the GPUs of this machine. `warpledger merge` joins the records."});
}

}  // namespace warpledger::cli
