// SPDX-License-Identifier: Apache-2.0
// The subjects that a program is linked with, and the device of each.
//
// A subject's file adds it, at namespace scope:
//
//   WARPLEDGER_SUBJECT(StandInSubject, Open);
//
// Others are no part of the program: a user's folder describes them. A file that makes such
// subjects adds their kind. What a subject of it needs to be made again is its definition, which
// its record keeps and its workers get.
//
//   static const SubjectKindRegistrar kRegistrar({"study", &FromFolder, &FromDefinition, &Open});

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/plan/subject.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// What a subject is measured on; one object may be both.
struct Device {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<Rig> rig;
};

// InvalidArgument with the known ones.
absl::StatusOr<const Subject*> FindSubject(std::string_view name);
// The subject that a folder describes; the kind's own errors.
// `design`: what is to be measured; empty: what the subject takes where none is named.
absl::StatusOr<const Subject*> SubjectIn(std::string_view kind, const std::string& folder,
                                         const std::string& design);
// One that the program knows, or that `definition` describes.
absl::StatusOr<const Subject*> FindSubject(std::string_view name,
                                           const SubjectDefinition& definition);
// The subject of a record that was loaded: FailedPrecondition where this program lacks it.
absl::StatusOr<const Subject*> SubjectOf(const RunInfo& run);
// Unavailable or Unimplemented where this machine or this build has none.
absl::StatusOr<Device> OpenDevice(const Subject& subject);

struct SubjectKind {
  std::string name;  // of each of its subjects
  absl::StatusOr<std::unique_ptr<const Subject>> (*from_folder)(const std::string& folder,
                                                                const std::string& design);
  absl::StatusOr<std::unique_ptr<const Subject>> (*from_definition)(
      const nlohmann::ordered_json& definition);
  absl::StatusOr<Device> (*open)(const Subject& subject);
};

struct SubjectKindRegistrar {
  explicit SubjectKindRegistrar(SubjectKind kind);
};

struct SubjectRegistrar {
  SubjectRegistrar(const Subject& (*subject)(), absl::StatusOr<Device> (*open)());
};

}  // namespace warpledger::ablations

// `subject`: a function that returns const Subject&; `open`: one that returns StatusOr<Device>.
#define WARPLEDGER_SUBJECT(subject, open)                                                         \
  [[maybe_unused]] static const ::warpledger::ablations::SubjectRegistrar kRegistrarOf_##subject( \
      []() -> const ::warpledger::ablations::Subject& { return subject(); }, &open)
