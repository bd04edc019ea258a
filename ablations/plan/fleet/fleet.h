// SPDX-License-Identifier: Apache-2.0
// A design on many boards: what each task measures, and where its record goes.
//
// A fleet is a folder. fleet.json lists its tasks; DIR/<task>/<board> is the record that a board,
// named by its UUID, made of a task. So a task that is started again on another board begins anew
// there, and on the same board it goes on.
//
// Contract
// - Tasks of one group are one design with one seed. A shard of it has some of its problems, in
//   turn: of three shards the second has problems 1, 4, 7 … Copies repeat a shard, each for a
//   board.
// - Tasks are only added to a fleet, behind those that it has: a number keeps its meaning.
//
// Errors: NotFound for a folder without fleet.json, DataLoss for a damaged one.
//
//   ASSIGN_OR_RETURN(const Fleet fleet, LoadFleet("out/fleet"));
//   ASSIGN_OR_RETURN(const FleetTask* task, FindTask(fleet, "7"));

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

inline constexpr char kFleetFile[] = "fleet.json";
inline constexpr int kMostTasks = 10'000;

// A folder has the name of its task, and no name is a number.
bool IsTaskName(std::string_view name);
inline constexpr auto kTaskName =
    Must{"a letter, then letters, digits, '_', '.' and '-', 200 at most", &IsTaskName};

struct FleetTask {
  std::string name;
  std::string group;
  std::vector<std::string> shapes;
  std::vector<std::string> flags;  // of `warpledger run`

  void Visit(auto& f) {
    f("name", name, kTaskName);
    f("group", group, kTaskName);
    f("shapes", shapes, "in the order of its record");
    f("flags", flags, "of `warpledger run`");
  }
  friend bool operator==(const FleetTask&, const FleetTask&) = default;
};

struct Fleet {
  std::vector<FleetTask> tasks;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    f("tasks", tasks);
  }
};

absl::StatusOr<Fleet> LoadFleet(const std::string& dir);
// By its name or its number, from 0. NotFound with what there is.
absl::StatusOr<const FleetTask*> FindTask(const Fleet& fleet, const std::string& name);
// The records of a task: folders and packs, sorted; empty where none was begun.
std::vector<std::string> RecordsOf(const std::string& dir, const FleetTask& task);
// The board that a path of RecordsOf is named by.
std::string BoardOf(const std::string& record);

// Every kShards-th of `all`, from `shard` on.
template <typename T>
std::vector<T> ShardOf(absl::Span<const T> all, int shard, int shards) {
  std::vector<T> some;
  for (size_t i = static_cast<size_t>(shard); i < all.size(); i += static_cast<size_t>(shards)) {
    some.push_back(all[i]);
  }
  return some;
}

}  // namespace warpledger::ablations
