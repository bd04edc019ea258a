// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/known_subjects.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpledger::ablations {
namespace {

struct KnownSubject {
  const Subject& (*subject)();
  absl::StatusOr<Device> (*open)();
};

// Filled before main(), in any order.
std::vector<KnownSubject>& Known() {
  static std::vector<KnownSubject> known;
  return known;
}

}  // namespace

SubjectRegistrar::SubjectRegistrar(const Subject& (*subject)(), absl::StatusOr<Device> (*open)()) {
  Known().push_back({subject, open});
}

absl::StatusOr<const Subject*> FindSubject(std::string_view name) {
  std::set<std::string> names;
  for (const KnownSubject& each : Known()) {
    if (each.subject().name() == name) return &each.subject();
    names.emplace(each.subject().name());
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown subject '", std::string(name),
                                                 "': it is ", absl::StrJoin(names, " or ")));
}

absl::StatusOr<const Subject*> SubjectOf(const RunInfo& run) {
  absl::StatusOr<const Subject*> subject = FindSubject(run.SubjectName());
  if (subject.ok()) return subject;
  return absl::FailedPreconditionError(
      absl::StrCat("run.json: a record of subject '", std::string(run.SubjectName()),
                   "', which this program does not know; judge it with the version that wrote it"));
}

absl::StatusOr<Device> OpenDevice(const Subject& subject) {
  for (const KnownSubject& each : Known()) {
    if (&each.subject() == &subject) return each.open();
  }
  return absl::InternalError("a subject that the program does not know");
}

}  // namespace warpledger::ablations
