// SPDX-License-Identifier: Apache-2.0
// A study as the engine's subject: its claims, designs, problems and variants.
//
// It has the designs of a list of techniques (host/listed_subject.h); `one_on` is what a run takes
// where none is named, because a technique that is wrong spoils all later steps of a ladder.
// Built with `since:GITREF` it has that design alone: each variant against itself, from the sources
// of that commit.
//
//   ASSIGN_OR_RETURN(const StudyFile file, StudyFile::Load("my_study"));
//   ASSIGN_OR_RETURN(const auto subject, StudySubject::Of({.study = file.study}));

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/host/listed_subject.h"
#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/study.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// A study with the libraries of its variants: all that a record keeps and a worker needs.
struct StudyDefinition {
  Study study;
  std::string folder = {};  // absolute
  std::string compiler = {};
  std::map<std::string, std::pair<std::string, std::string>> libraries = {};  // file, SHA-256
  std::string since = {};  // the commit; its variants' names begin with kSinceVariant

  template <typename F>
  void Visit(F& f) {
    FIELDS(study, folder, compiler, libraries);
    f("since", since, kOnlyWhereSet);
  }
};
inline constexpr char kSince[] = "since:";
inline constexpr char kSinceVariant[] = "@was+";

class StudySubject final : public ListedSubject {
 public:
  // With the variants of a design built; empty: of the default one.
  static absl::StatusOr<std::unique_ptr<const StudySubject>> Build(const StudyFile& file,
                                                                   const std::string& design);
  static std::unique_ptr<const StudySubject> Of(StudyDefinition definition);

  const StudyDefinition& definition() const { return *definition_; }
  // What Build() built; null in a subject of a definition.
  const StudyBuild* build() const { return build_.get(); }
  // Of a design, each once, and those whose code is theirs.
  absl::StatusOr<std::vector<std::string>> VariantsOf(const std::string& design) const;
  // InvalidArgument where the subject has no problem of these parameters.
  absl::StatusOr<Parameters> ParametersOf(const ShapeInfo& problem) const;

  nlohmann::ordered_json Definition() const override { return ToJson(*definition_); }
  std::string DefaultDesign() const override { return "one_on"; }
  std::vector<PlannedDesign> Designs() const override;
  absl::StatusOr<PlannedDesign> FindDesign(std::string_view name) const override;
  std::string_view ClaimsFile() const override { return kStudyFile; }
  bool IsPredictedFor(const Claim& claim, std::string_view design,
                      std::string_view candidate) const override;
  // Also problems by their parameters: "rows=4096:cols=8192".
  absl::StatusOr<std::vector<ShapeInfo>> ParseProblems(std::string_view list) const override;
  absl::Status CheckProblem(const ShapeInfo& problem) const override;
  std::vector<std::string> CodeNames(const std::string& config,
                                     const ShapeInfo& problem) const override;

 private:
  explicit StudySubject(std::shared_ptr<const StudyDefinition> definition);

  const std::shared_ptr<const StudyDefinition> definition_;
  std::shared_ptr<const StudyBuild> build_;
};

}  // namespace warpledger::ablations
