// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/host/listed_subject.h"

#include "ablations/base/json_fields.h"
#include "ablations/plan/job.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace warpledger::ablations {
namespace {

constexpr char kLadder[] = "ladder";
constexpr char kOneOn[] = "one_on";
constexpr char kLeaveOneOut[] = "leave_one_out";
constexpr char kPairs[] = "pairs";
constexpr char kFactorial[] = "factorial";
constexpr char kFactorialOf[] = "factorial:";
constexpr size_t kMostOfFactorial = 6;  // 64 cells

// A list of the program's own would show attention's names.
absl::Status UnknownTo(const char* kind, std::string_view name,
                       const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(absl::StrCat("unknown ", kind, " '", std::string(name),
                                                 "': it is one of ", absl::StrJoin(known, ", ")));
}

std::vector<std::string> NamesOf(const std::vector<ShapeInfo>& problems) {
  std::vector<std::string> names;
  for (const ShapeInfo& problem : problems) names.push_back(problem.name);
  return names;
}

}  // namespace

ShapeInfo SizedProblem(std::string name, int n) {
  return {std::move(name), {{"n", n}, {"flops", 1.0 * n}, {"min_bytes", 4.0 * n}}};
}

std::vector<const Claim*> ListedSubject::On(std::string_view config) const {
  std::vector<const Claim*> on;
  const std::vector<std::string> ids = absl::StrSplit(std::string(config), '+');
  for (const Claim& technique : list_.techniques) {
    if (absl::c_linear_search(ids, technique.id)) on.push_back(&technique);
  }
  return on;
}

bool ListedSubject::IsVariant(std::string_view config) const {
  return config == list_.baseline ||
         static_cast<size_t>(1 + absl::c_count(config, '+')) == On(config).size();
}

bool ListedSubject::IsOn(std::string_view config, const Claim& claim) const {
  return absl::c_any_of(On(config), [&](const Claim* each) { return each->id == claim.id; });
}

bool ListedSubject::IsPredictedFor(const Claim& /*claim*/, std::string_view design,
                                   std::string_view /*candidate*/) const {
  return KindOf(design) == DesignKind::kCumulative;
}

// The arm with one technique more than `base`.
PlannedArm ListedSubject::With(const PlannedArm& base, std::string_view role, std::string name,
                               const Claim& claim) const {
  const std::string id(claim.id);
  return {.name = std::move(name),
          .config = base.config == list_.baseline ? id : absl::StrCat(base.config, "+", id),
          .role = std::string(role),
          .toggle = id,
          .base = base.name};
}

void ListedSubject::AddControls(const PlannedArm& of, PlannedDesign* design) const {
  design->arms.push_back(
      {.name = "control:aa", .config = of.config, .role = kRoleAa, .base = of.name});
  for (const Claim& technique : list_.techniques) {
    if (!technique.control) continue;
    design->arms.push_back(
        With(of, kRoleNull, absl::StrCat("control:", std::string(technique.id)), technique));
  }
}

PlannedDesign ListedSubject::Begun(std::string name, std::string label, PlannedArm base) const {
  return {.name = std::move(name),
          .label = std::move(label),
          .arms = {std::move(base)},
          .floors = {kFloorArm},
          .peers = false};
}

PlannedDesign ListedSubject::Steps(const char* name, const char* label, bool cumulative) const {
  PlannedDesign design =
      Begun(name, label, {.name = list_.baseline, .config = list_.baseline, .role = kRoleBase});
  for (const Claim& technique : list_.techniques) {
    if (technique.control) continue;
    size_t base = cumulative ? design.arms.size() - 1 : 0;
    if (const auto on = list_.on.find(technique.id); !cumulative && on != list_.on.end()) {
      const std::string needed = absl::StrCat(name, ":", on->second);
      while (base + 1 < design.arms.size() && design.arms[base].name != needed) ++base;
    }
    design.arms.push_back(With(design.arms[base], kRoleStep,
                               absl::StrCat(name, ":", std::string(technique.id)), technique));
  }
  AddControls(PlannedArm(design.arms.front()), &design);
  return design;
}

// Whether a technique is on top of another one, by way of others too.
bool ListedSubject::Needs(std::string_view id, std::string_view other) const {
  const auto on = list_.on.find(id);
  return on != list_.on.end() && (on->second == other || Needs(on->second, other));
}

PlannedDesign ListedSubject::LeaveOneOut() const {
  std::vector<std::string> all;
  for (const Claim& technique : list_.techniques) {
    if (!technique.control) all.emplace_back(technique.id);
  }
  PlannedDesign design =
      Begun(kLeaveOneOut, "each technique left out of all",
            {.name = "all", .config = absl::StrJoin(all, "+"), .role = kRoleBase});
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> others, left_out;
    for (const std::string& id : all) {
      (id == all[i] || Needs(id, all[i]) ? left_out : others).push_back(id);
    }
    design.arms.push_back({.name = absl::StrCat("without:", absl::StrJoin(left_out, "+")),
                           .config = others.empty() ? list_.baseline : absl::StrJoin(others, "+"),
                           .role = kRoleWithout,
                           .toggle = all[i],
                           .base = "all"});
  }
  AddControls(PlannedArm(design.arms.front()), &design);
  return design;
}

std::vector<const Claim*> ListedSubject::Techniques() const {
  std::vector<const Claim*> steps;
  for (const Claim& technique : list_.techniques) {
    if (!technique.control) steps.push_back(&technique);
  }
  return steps;
}

PlannedDesign ListedSubject::Pairs() const {
  PlannedDesign design = Steps(kPairs, "each technique alone, and on top of each other one",
                               /*cumulative=*/false);
  std::vector<PlannedArm> arms;
  for (const PlannedArm& below : design.arms) {
    for (const Claim* claim : Techniques()) {
      // A pair is there once, and not where one is on top of the other anyway.
      if (below.role != kRoleStep || claim <= FindClaim(below.toggle)) continue;
      if (IsOn(below.config, *claim) || Needs(claim->id, below.toggle)) continue;
      const auto on = list_.on.find(claim->id);
      if (on != list_.on.end() && !IsOn(below.config, *FindClaim(on->second))) continue;
      arms.push_back(With(below, kRoleStep,
                          absl::StrCat(kPairs, ":", below.toggle, "+", std::string(claim->id)),
                          *claim));
    }
  }
  const auto controls = absl::c_find_if(
      design.arms, [](const PlannedArm& arm) { return arm.role == std::string_view(kRoleAa); });
  design.arms.insert(controls, arms.begin(), arms.end());
  return design;
}

PlannedDesign ListedSubject::Combinations(std::string name,
                                          const std::vector<const Claim*>& of) const {
  PlannedDesign design =
      Begun(std::move(name), absl::StrCat("every combination of ", of.size(), " techniques"),
            {.name = "cell:none", .config = list_.baseline, .role = kRoleBase});
  // Cell i has the techniques of its bits; the highest is on top of a cell before it.
  for (size_t cell = 1; cell < size_t{1} << of.size(); ++cell) {
    size_t highest = of.size() - 1;
    while ((cell >> highest) == 0) --highest;
    PlannedArm arm = With(design.arms[cell - (size_t{1} << highest)], kRoleStep, "", *of[highest]);
    arm.name = absl::StrCat("cell:", arm.config);
    design.arms.push_back(std::move(arm));
  }
  AddControls(PlannedArm(design.arms.back()), &design);
  return design;
}

std::vector<PlannedDesign> ListedSubject::Designs() const {
  std::vector<PlannedDesign> designs = {
      Steps(kLadder, "each technique on top of all before it", /*cumulative=*/true),
      Steps(kOneOn, "each technique alone", /*cumulative=*/false), LeaveOneOut()};
  std::vector<const Claim*> first = Techniques();
  if (first.size() < 2) return designs;
  designs.push_back(Pairs());
  first.resize(2);
  designs.push_back(Combinations(kFactorial, first));
  return designs;
}

absl::StatusOr<PlannedDesign> ListedSubject::FindDesign(std::string_view name) const {
  if (name.starts_with(kFactorialOf)) {
    std::vector<const Claim*> of;
    const std::string list(name.substr(std::string_view(kFactorialOf).size()));
    for (const std::string& id : std::vector<std::string>(absl::StrSplit(list, ','))) {
      const Claim* claim = FindClaim(id);
      if (claim == nullptr || claim->control) {
        std::vector<std::string> known;
        for (const Claim* each : Techniques()) known.emplace_back(each->id);
        return UnknownTo("technique", id, known);
      }
      if (absl::c_linear_search(of, claim)) {
        return absl::InvalidArgumentError(
            absl::StrCat("design '", std::string(name), "' names ", id, " twice"));
      }
      of.push_back(claim);
    }
    absl::c_sort(of);  // as the list has them
    if (of.size() < 2 || of.size() > kMostOfFactorial) {
      return absl::InvalidArgumentError(
          absl::StrCat("a factorial is of 2 to ", kMostOfFactorial, " techniques"));
    }
    return Combinations(std::string(name), of);
  }
  std::vector<std::string> known;
  for (PlannedDesign& design : Designs()) {
    if (design.name == name) return std::move(design);
    known.push_back(design.name);
  }
  return UnknownTo("design", name, known);
}

DesignKind ListedSubject::KindOf(std::string_view design) const {
  return design == kLadder                                          ? DesignKind::kCumulative
         : design == kFactorial || design.starts_with(kFactorialOf) ? DesignKind::kFactorial
                                                                    : DesignKind::kOther;
}

std::optional<std::vector<InfeasibleCell>> ListedSubject::Infeasible(
    std::string_view /*design*/) const {
  return std::vector<InfeasibleCell>();
}

absl::StatusOr<std::vector<ShapeInfo>> ListedSubject::ParseProblems(std::string_view list) const {
  if (list == "all" || list == "ladder") return list_.problems;
  std::vector<ShapeInfo> problems;
  const std::vector<std::string> names = absl::StrSplit(std::string(list), ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    const auto found =
        absl::c_find_if(list_.problems, [&](const ShapeInfo& p) { return p.name == name; });
    if (found == list_.problems.end()) return UnknownTo("problem", name, NamesOf(list_.problems));
    problems.push_back(*found);
  }
  return problems;
}

absl::Status ListedSubject::CheckProblem(const ShapeInfo& problem) const {
  FieldPath path;
  FieldReader fields(problem.fields, path);
  for (const auto& [name, value] : list_.problems.front().fields.items()) {
    int number = 0;
    if (value.is_number_integer()) fields(name.c_str(), number, Within{1, 1 << 24});
  }
  return fields.status();
}

absl::StatusOr<std::string> ListedSubject::FindVariant(std::string_view name) const {
  std::vector<std::string> known;
  for (const PlannedDesign& design : Designs()) {
    for (const PlannedArm& arm : design.arms) {
      if (arm.name == name) return arm.config;
      known.push_back(arm.name);
    }
  }
  if (IsVariant(name)) return std::string(name);
  return UnknownTo("variant", name, known);
}

std::string ListedSubject::LabelOf(std::string_view config) const {
  return config == list_.baseline ? list_.baseline_label : "";
}

std::vector<std::string> ListedSubject::CodeNames(const std::string& config,
                                                  const ShapeInfo& /*problem*/) const {
  return {config};
}

}  // namespace warpledger::ablations
