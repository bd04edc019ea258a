// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/subjects.h"

#include <vector>

#include "ablations/subjects/sdpa/subject.h"
#include "ablations/subjects/stand_in/stand_in.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpledger::cli {
namespace {

absl::StatusOr<Device> OpenStandIn() {
  const auto both = std::make_shared<ablations::StandInRig>();
  return Device{both, both};
}

struct KnownSubject {
  const ablations::Subject& (*subject)();
  absl::StatusOr<Device> (*open)();
};
constexpr KnownSubject kSubjects[] = {
    {&ablations::SdpaSubject, &OpenGpu},
    {&ablations::StandInSubject, &OpenStandIn},
};

}  // namespace

absl::StatusOr<const ablations::Subject*> FindSubject(std::string_view name) {
  std::vector<std::string> known;
  for (const KnownSubject& each : kSubjects) {
    if (each.subject().name() == name) return &each.subject();
    known.emplace_back(each.subject().name());
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown subject '", std::string(name),
                                                 "': it is ", absl::StrJoin(known, " or ")));
}

absl::StatusOr<const ablations::Subject*> SubjectOf(const ablations::RunInfo& run) {
  absl::StatusOr<const ablations::Subject*> subject = FindSubject(run.SubjectName());
  if (subject.ok()) return subject;
  return absl::FailedPreconditionError(
      absl::StrCat("run.json: a record of subject '", std::string(run.SubjectName()),
                   "', which this program does not know; judge it with the version that wrote it"));
}

absl::StatusOr<Device> OpenDevice(const ablations::Subject& subject) {
  for (const KnownSubject& each : kSubjects) {
    if (&each.subject() == &subject) return each.open();
  }
  return absl::InternalError("a subject that the program does not know");
}

}  // namespace warpledger::cli
