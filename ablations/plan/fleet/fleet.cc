// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/fleet/fleet.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ablations/base/files.h"
#include "ablations/record/record_files.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

bool IsTaskName(std::string_view name) {
  return !name.empty() && name.size() <= 200 &&
         absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
                  c == '-';
         });
}

absl::StatusOr<Fleet> LoadFleet(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kFleetFile);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(dir, ": no fleet here, it has no ", kFleetFile,
                                            ". `warpledger fleet --out=DIR` writes one."));
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<Fleet> fleet = FromText<Fleet>(*text);
  std::string why = fleet.ok() ? "" : std::string(fleet.status().message());
  std::set<std::string> names;
  for (size_t i = 0; why.empty() && i < fleet->tasks.size(); ++i) {
    const std::string& name = fleet->tasks[i].name;
    if (!names.insert(name).second) why = absl::StrCat("two tasks are called '", name, "'");
  }
  if (!why.empty()) return absl::DataLossError(absl::StrCat(path, ": ", why));
  return fleet;
}

absl::StatusOr<const FleetTask*> FindTask(const Fleet& fleet, const std::string& name) {
  for (const FleetTask& task : fleet.tasks) {
    if (task.name == name) return &task;
  }
  size_t number = 0;
  if (absl::SimpleAtoi(name, &number) && number < fleet.tasks.size()) return &fleet.tasks[number];
  return absl::NotFoundError(absl::StrCat(
      "no task '", name, "': this fleet has ", fleet.tasks.size(),
      fleet.tasks.empty() ? ""
                          : absl::StrCat(", from 0, ", fleet.tasks.front().name, ", to ",
                                         fleet.tasks.size() - 1, ", ", fleet.tasks.back().name)));
}

std::vector<std::string> RecordsOf(const std::string& dir, const FleetTask& task) {
  return RecordsIn(absl::StrCat(dir, "/", task.name));
}

std::string BoardOf(const std::string& record) {
  return std::filesystem::path(WithoutPackSuffix(record)).filename().string();
}

}  // namespace warpledger::ablations
