// SPDX-License-Identifier: Apache-2.0
// `warpledger fleet`: a design on many boards. plan/fleet/fleet.h has the files.

#pragma once

#include <string>
#include <vector>

#include "ablations/cli/measure/run.h"
#include "ablations/plan/fleet/fleet.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct FleetFlags : RunFlags {
  Flag<std::string> name{this, "name", "", "of the tasks and their records; default: the design"};
  Flag<int> boards{this, "boards", 1,
                   "measure everything this many times, each time on another GPU"};
  Flag<int> shards{this, "shards", 1, "divide the shapes among this many tasks"};
  Flag<std::string> work{this, "work", "", "a fleet's folder: measure its missing tasks here"};
  Flag<std::string> task{this, "task", "", "with --work: this task alone, by name or number"};
  Flag<std::string> only{this, "only", "", "with --work: only the tasks of these names"};
  Flag<int> gpus{this, "gpus", 1,
                 "with --work: use this many GPUs at a time (those of CUDA_VISIBLE_DEVICES, or the "
                 "first ones), each with its share of the logical CPUs"};
  Flag<bool> board{this, "board", false, "with --work: only print the UUID of the GPU"};
};

absl::StatusOr<int> Fleet(const FleetFlags& flags);

// Measures what tasks lack on `gpus` GPUs of this machine, each task by a process of its own, and
// prints what they say. A task that was begun on one of them goes on there; a GPU on which two
// tasks in a row fail takes no other. Returns the exit code: kExitFinding where tasks failed.
absl::StatusOr<int> WorkHere(const std::string& dir,
                             const std::vector<const ablations::FleetTask*>& tasks, int gpus);

}  // namespace warpledger::cli
