// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/known_subjects.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

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

std::vector<SubjectKind>& Kinds() {
  static std::vector<SubjectKind> kinds;
  return kinds;
}

// Subjects that a folder or a definition described. They stay until the process ends, as those of
// the program do.
struct MadeSubject {
  std::string definition;
  std::unique_ptr<const Subject> subject;
};
std::vector<MadeSubject>& Made() {
  static std::vector<MadeSubject> made;
  return made;
}

const Subject* Keep(std::unique_ptr<const Subject> subject) {
  Made().push_back({DumpLine(subject->Definition()), std::move(subject)});
  return Made().back().subject.get();
}

const SubjectKind* FindKind(std::string_view name) {
  for (const SubjectKind& kind : Kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace

SubjectKindRegistrar::SubjectKindRegistrar(SubjectKind kind) { Kinds().push_back(std::move(kind)); }

absl::StatusOr<const Subject*> SubjectIn(std::string_view kind, const std::string& folder,
                                         const std::string& design) {
  const SubjectKind* known = FindKind(kind);
  if (known == nullptr) {
    return absl::UnimplementedError(absl::StrCat("this program makes no ", std::string(kind)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Subject> subject, known->from_folder(folder, design));
  return Keep(std::move(subject));
}

absl::StatusOr<const Subject*> FindSubject(std::string_view name,
                                           const SubjectDefinition& definition) {
  const SubjectKind* kind = definition.json.is_null() ? nullptr : FindKind(name);
  if (kind == nullptr) return FindSubject(name);
  const std::string text = DumpLine(definition.json);
  for (const MadeSubject& made : Made()) {
    if (made.definition == text && made.subject->name() == name) return made.subject.get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Subject> subject, kind->from_definition(definition.json));
  return Keep(std::move(subject));
}

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
  absl::StatusOr<const Subject*> subject = FindSubject(run.SubjectName(), run.definition);
  if (subject.ok()) return subject;
  if (!run.definition.json.is_null()) {
    return absl::DataLossError(
        absl::StrCat("run.json: definition.", std::string(subject.status().message())));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("run.json: a record of subject '", std::string(run.SubjectName()),
                   "', which this program does not know; judge it with the version that wrote it"));
}

absl::StatusOr<Device> OpenDevice(const Subject& subject) {
  for (const KnownSubject& each : Known()) {
    if (&each.subject() == &subject) return each.open();
  }
  if (const SubjectKind* kind = FindKind(subject.name()); kind != nullptr) {
    return kind->open(subject);
  }
  return absl::InternalError("a subject that the program does not know");
}

}  // namespace warpledger::ablations
