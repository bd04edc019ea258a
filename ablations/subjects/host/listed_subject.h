// SPDX-License-Identifier: Apache-2.0
// A subject from lists: techniques, problems, kinds of inputs.
//
// Its designs follow from the list of techniques: `ladder`, each on top of all before it; `one_on`,
// each alone, or on top of the one that the list names; `leave_one_out`, each left out of all, with
// those on top of it; `pairs`, each alone and on top of each one before it; and `factorial`, every
// combination of the first two, or of those that its name says: `factorial:A,B,C`. All have the
// control `control:aa`, and `control:null_toggle` where a technique is a control. A configuration
// is printed as the ids of its techniques, joined by '+'.
//
//   const ListedSubject subject({.name = "sums",
//                                .baseline = "one_accumulator",
//                                .baseline_label = "One accumulator",
//                                .techniques = {{.id = "four", .label = "Four"}}},
//                                .problems = {SizedProblem("sum_1k", 1 << 10)}});

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/plan/subject.h"

namespace warpledger::ablations {

struct SubjectList {
  std::string name;
  std::string baseline;           // what the variant without any technique is called in a record
  std::string baseline_label;     // and by a person
  std::vector<Claim> techniques;  // in the order of the ladder, where a control is no step
  std::vector<ShapeInfo> problems;
  std::vector<std::string> input_kinds = {"uniform", "constant"};
  std::map<std::string, std::string, std::less<>> on = {};  // a technique: the one that it needs
};

// A problem of n numbers, each read and added once.
ShapeInfo SizedProblem(std::string name, int n);

class ListedSubject : public Subject {
 public:
  explicit ListedSubject(SubjectList list) : list_(std::move(list)) {}

  // The techniques that a configuration has on.
  std::vector<const Claim*> On(std::string_view config) const;
  bool IsVariant(std::string_view config) const;

  std::string_view name() const override { return list_.name; }
  const std::string& baseline() const { return list_.baseline; }
  absl::Span<const Claim> claims() const override { return list_.techniques; }
  bool IsPredictedFor(const Claim& claim, std::string_view design,
                      std::string_view candidate) const override;
  std::vector<PlannedDesign> Designs() const override;
  absl::StatusOr<PlannedDesign> FindDesign(std::string_view name) const override;
  DesignKind KindOf(std::string_view design) const override;
  std::optional<std::vector<InfeasibleCell>> Infeasible(std::string_view design) const override;
  absl::StatusOr<std::vector<ShapeInfo>> ParseProblems(std::string_view list) const override;
  // Every number of the first problem must be there, from 1 to 2^24.
  absl::Status CheckProblem(const ShapeInfo& problem) const override;
  std::vector<std::string> InputKinds() const override { return list_.input_kinds; }
  absl::StatusOr<std::string> FindVariant(std::string_view name) const override;
  std::string LabelOf(std::string_view config) const override;
  std::vector<std::string> CodeNames(const std::string& config,
                                     const ShapeInfo& problem) const override;
  bool IsOn(std::string_view config, const Claim& claim) const override;
  std::string WhyNoVariant(const ShapeInfo& /*problem*/) const override { return ""; }

 private:
  PlannedArm With(const PlannedArm& base, std::string_view role, std::string name,
                  const Claim& claim) const;
  // A design with its base alone.
  PlannedDesign Begun(std::string name, std::string label, PlannedArm base) const;
  // Each technique as a step from the one before, or from the base.
  PlannedDesign Steps(const char* name, const char* label, bool cumulative) const;
  PlannedDesign LeaveOneOut() const;
  bool Needs(std::string_view id, std::string_view other) const;
  PlannedDesign Pairs() const;
  PlannedDesign Combinations(std::string name, const std::vector<const Claim*>& of) const;
  std::vector<const Claim*> Techniques() const;  // without controls
  void AddControls(const PlannedArm& of, PlannedDesign* design) const;

  const SubjectList list_;
};

}  // namespace warpledger::ablations
