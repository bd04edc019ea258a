// SPDX-License-Identifier: Apache-2.0
// Joins the records of a fleet (plan/fleet/fleet.h).
//
// Contract
// - Shards that one board measured become one record, as one run would have written it; argv names
//   the parts. Boards are never mixed: each has records of its own. What needs no joining keeps its
//   bytes. All are packed.
// - What does not fit is named with its reason: a record that is damaged, of another task, board,
//   design, seed, build or protocol than its fellows, or none of the fleet; a task of which no
//   record is whole.
// - `out` is made whole or not at all: OUT/<gpu>/<run>.tar.zst. An unfinished record is left out,
// with a
//   note where another board finished its task.
//
// Errors: AlreadyExists where `out` is there, and those of loading the fleet and of writing.
//
//   ASSIGN_OR_RETURN(const Merged merged, MergeFleet("out/fleet", "out/records", {}));

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpledger::ablations {

struct MergeOptions {
  bool partial = false;           // write what fits, whatever does not
  std::vector<std::string> argv;  // as called, for run.json of what is joined
};

struct Merged {
  struct Record {
    std::string path;
    std::string board;
    std::vector<std::string> parts;  // DIR/<task>/<board>
  };
  std::vector<Record> records;        // as written; empty where nothing was
  std::vector<std::string> misfits;   // "PATH: why", "TASK: why"
  std::vector<std::string> left_out;  // likewise; none of them is missed
};

absl::StatusOr<Merged> MergeFleet(const std::string& dir, const std::string& out,
                                  const MergeOptions& options);

}  // namespace warpledger::ablations
