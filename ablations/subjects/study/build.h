// SPDX-License-Identifier: Apache-2.0
// A study's variants as libraries, with what their machine code is.
//
// A variant is called as its techniques, joined by '+', or kStudyBase. Each distinct set of
// definitions, flags and sources is compiled once and kept in the study's folder until one of the
// files that it was made from changes.
//
// Errors: InvalidArgument "study.toml:LINE: …" where a variant does not build or a definition is
// one that no source reads; Unavailable without Python.
//
//   ASSIGN_OR_RETURN(const StudyBuild build, BuildStudy(file, {"base", "vector_loads"}));

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/study.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr char kStudyBase[] = "base";
inline constexpr char kStudyNull[] = "null_toggle";  // the control that every design has
inline constexpr char kSinceClaim[] = "since";       // that the sources are faster than a commit's

// What one variant is compiled with.
struct VariantRequest {
  std::string name;
  std::vector<std::string> define;
  std::vector<std::string> flags;
  std::vector<std::string> sources;

  DESCRIBE_FIELDS(name, define, flags, sources)
};

struct BuildRequest {
  std::string folder;
  std::string cache;
  std::string include;  // where warpledger/study.h is
  std::string device;
  std::vector<std::string> architectures;
  std::vector<VariantRequest> variants;
  std::vector<std::pair<std::string, std::string>> names;  // of a definition, and of its variant
  std::vector<std::string> ptx;                            // patterns

  DESCRIBE_FIELDS(folder, cache, include, device, architectures, variants, names, ptx)
};

struct BuiltVariant {
  std::string name;
  std::string error;  // why it is not there
  std::string library;
  std::string library_sha256;
  std::string host_sha256;             // of the host's side of the code
  std::map<std::string, int64_t> ptx;  // lines that a pattern finds

  void Visit(auto& f) {
    FIELDS(name, error);
    f("library", library, kOlderRecordsLack);
    f("library_sha256", library_sha256, kOlderRecordsLack);
    f("host_sha256", host_sha256, kOlderRecordsLack);
    f("ptx", ptx, kOlderRecordsLack);
  }
};

struct StudyBuild {
  std::string compiler;
  std::vector<BuiltVariant> variants;  // as asked for
  std::vector<std::string> unread;     // definitions that no source has a word for
  ResourcesFile resources;
  Codegen codegen;

  DESCRIBE_FIELDS(compiler, variants, unread, resources, codegen)

  const BuiltVariant* Find(std::string_view name) const;
};

// The variant that a claim alone is held against, and with it: all that it is on top of, joined.
std::string BaseOf(const Study& study, const StudyClaim& claim);
std::string VariantOf(const Study& study, const StudyClaim& claim);
// The techniques that are compiled into a variant.
std::vector<const StudyClaim*> ClaimsIn(const Study& study, std::string_view variant);
// What is no claim's id in a variant's name, in words; empty: all are.
std::string UnknownClaimIn(const Study& study, std::string_view variant);
// InvalidArgument where a variant's name has an unknown id. The variants may lack an entry, or
// code: each says why.
absl::StatusOr<StudyBuild> TryToBuildStudy(const StudyFile& file,
                                           const std::vector<std::string>& variants);
// The line of the study that a variant's failure belongs to, as an error.
absl::Status WhyNotBuilt(const StudyFile& file, const BuiltVariant& variant);
// One line for each definition that no source reads, with its place in the study.
std::vector<std::string> UnreadDefinitions(const StudyFile& file, const StudyBuild& build);
// All of them, and no definition that no source reads.
absl::StatusOr<StudyBuild> BuildStudy(const StudyFile& file,
                                      const std::vector<std::string>& variants);

// What a study's build shows before anything is measured: which techniques reach the machine code,
// which are one kernel, and whether the evidence that each claim names is there.
//
//   const BuildReport report = ReportOn(file, subject, build);
//   for (const std::string& finding : report.findings) …

struct BuildReport {
  std::vector<std::string> table;     // a line for each variant of one technique at most
  std::vector<std::string> evidence;  // a line for each pattern of a claim
  std::vector<std::string> findings;  // what is wrong, with its place in the study
};

BuildReport ReportOn(const StudyFile& file, const StudyBuild& build);

}  // namespace warpledger::ablations
