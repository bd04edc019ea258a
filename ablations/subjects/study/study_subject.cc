// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/study_subject.h"

#include <cstdio>
#include <filesystem>
#include <iterator>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "ablations/plan/job.h"
#include "ablations/subjects/study/data.h"
#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

// The texts stay the study's.
Claim ClaimOf(const StudyClaim& claim) {
  return {.id = claim.id,
          .label = claim.label,
          .mechanism = claim.mechanism,
          .gate = claim.gate,
          .predicted = {claim.prediction.problem, claim.prediction.low, claim.prediction.high,
                        claim.prediction.why},
          .evidence = {.opcodes = claim.sass.empty() ? claim.fewer_sass : claim.sass,
                       .fewer_opcodes = !claim.fewer_sass.empty(),
                       .launched = claim.launched},
          .source = {claim.source.name, claim.source.link},
          .prior = claim.prior,
          .lesson = claim.lesson,
          .launch_side = !claim.launched.empty()};
}

ShapeInfo ShapeOf(const Study& study, const StudyProblem& problem) {
  ShapeInfo shape;
  shape.name = problem.name;
  for (const auto& [name, value] : problem.parameters) shape.fields[name] = value;
  shape.fields["flops"] = Evaluate(study.work.flops.text, problem.parameters).value_or(0);
  shape.fields["min_bytes"] = Evaluate(study.work.bytes.text, problem.parameters).value_or(0);
  return shape;
}

// A problem from "rows=4096:cols=8192", which is its name too.
absl::StatusOr<StudyProblem> ProblemFrom(const std::string& text, const Study& study) {
  StudyProblem problem;
  problem.name = text;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  for (const std::string& part : parts) {
    const std::pair<std::string, std::string> assigned =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (!absl::SimpleAtoi(assigned.second, &value) || value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' of problem '", text, "' is no NAME=NUMBER"));
    }
    if (!problem.parameters.emplace(assigned.first, value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("problem '", text, "' names '", assigned.first, "' twice"));
    }
  }
  Study with = study;
  with.problem.push_back(problem);
  const std::string why = with.WhyInvalid();
  if (why.empty()) return problem;
  return absl::InvalidArgumentError(absl::StrCat("problem '", text, "': ", why));
}

SubjectList ListOf(const StudyDefinition& definition) {
  const Study& study = definition.study;
  SubjectList list = {.name = "study",
                      .baseline = kStudyBase,
                      .baseline_label = study.base_label,
                      .techniques = {},
                      .problems = {},
                      .input_kinds = {"stated"},
                      .on = {}};
  for (const StudyClaim& claim : study.claim) {
    list.techniques.push_back(ClaimOf(claim));
    if (!claim.on.empty()) list.on[claim.id] = claim.on;
  }
  if (!definition.since.empty()) {
    list.techniques.push_back({.id = kSinceClaim,
                               .label = "The sources as they are, against those of the commit",
                               .mechanism = "The change made the kernel faster.",
                               .gate = 1.05});
  }
  list.techniques.push_back({.id = kStudyNull,
                             .label = "Null toggle (control)",
                             .mechanism = "It changes nothing.",
                             .control = true});
  for (const StudyProblem& problem : study.problem) {
    list.problems.push_back(ShapeOf(study, problem));
  }
  return list;
}

// What git prints for arguments in `folder`; its own message goes to standard error.
absl::StatusOr<std::string> Git(const std::string& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "-C", folder});
  std::string said;
  RETURN_IF_ERROR(RunLines(arguments, "", absl::Minutes(5), [&](std::string_view line) {
    said = std::string(line);
    return absl::OkStatus();
  }));
  return said;
}

// The study's folder as it is in a commit, with all else of the repository around it.
absl::StatusOr<std::string> FolderAt(const std::string& folder, const std::string& commit) {
  ASSIGN_OR_RETURN(const std::string root, Git(folder, {"rev-parse", "--show-toplevel"}));
  ASSIGN_OR_RETURN(const std::string inside, Git(folder, {"rev-parse", "--show-prefix"}));
  const std::string tree = absl::StrCat(folder, "/", kStudyCache, "/commits/", commit);
  std::error_code error;
  if (!std::filesystem::exists(tree, error)) {
    const std::string part = tree + ".part";
    RETURN_IF_ERROR(CreateDirectories(part));
    RETURN_IF_ERROR(RunLines(
        {"sh", "-c", "git -C \"$1\" archive \"$2\" | tar -x -C \"$3\"", "sh", root, commit, part},
        "", absl::Minutes(30), [](std::string_view) { return absl::OkStatus(); }));
    std::filesystem::rename(part, tree, error);
  }
  return absl::StrCat(tree, "/", inside);
}

// The reference on the problem that moves least: what is wrong with it is told before a run writes
// anything, and which planted errors its tolerance would not find.
absl::Status CheckReference(const StudyFile& file) {
  const Study& study = file.study;
  if (study.check.reference.empty()) return absl::OkStatus();
  const auto bytes = [&](const StudyProblem& problem) {
    return Evaluate(study.work.bytes.text, problem.parameters).value_or(0);
  };
  const auto least = absl::c_min_element(
      study.problem, [&](const auto& a, const auto& b) { return bytes(a) < bytes(b); });
  const auto data = MakeData(study, file.folder, least->parameters, {1}, /*probe=*/true);
  if (!data.ok()) return file.toml.Located(data.status());
  if (!data->let_through.empty()) {
    std::fprintf(stderr, "warpledger: %s: check: on problem '%s' it would let through: %s\n",
                 file.toml.PlaceOf("check").c_str(), least->name.c_str(),
                 absl::StrJoin(data->let_through, ", ").c_str());
  }
  return absl::OkStatus();
}

}  // namespace

StudySubject::StudySubject(std::shared_ptr<const StudyDefinition> definition)
    : ListedSubject(ListOf(*definition)), definition_(std::move(definition)) {}

std::unique_ptr<const StudySubject> StudySubject::Of(StudyDefinition definition) {
  return std::unique_ptr<const StudySubject>(
      new StudySubject(std::make_shared<const StudyDefinition>(std::move(definition))));
}

absl::StatusOr<std::unique_ptr<const StudySubject>> StudySubject::Build(const StudyFile& file,
                                                                        const std::string& design) {
  StudyDefinition definition = {.study = file.study, .folder = file.folder};
  if (design.starts_with(kSince)) {
    const std::string name =
        absl::StrCat(design.substr(std::string_view(kSince).size()), "^{commit}");
    const auto commit = Git(file.folder, {"rev-parse", "--verify", "--end-of-options", name});
    if (!commit.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("design ", design, ": git knows no such commit of ", file.folder));
    }
    definition.since = *commit;
  }
  ASSIGN_OR_RETURN(std::vector<std::string> variants, Of(definition)->VariantsOf(design));
  std::erase_if(variants, [](const auto& each) { return each.starts_with(kSinceVariant); });
  ASSIGN_OR_RETURN(StudyBuild build, BuildStudy(file, variants));
  RETURN_IF_ERROR(CheckReference(file));
  if (!definition.since.empty()) {
    // The study's questions are today's, the sources those of the commit.
    StudyFile then = file;
    ASSIGN_OR_RETURN(then.folder, FolderAt(file.folder, definition.since));
    ASSIGN_OR_RETURN(StudyBuild old, TryToBuildStudy(then, variants));
    for (BuiltVariant& variant : old.variants) {
      if (!variant.error.empty()) return WhyNotBuilt(then, variant);
      variant.name.insert(0, kSinceVariant);
      build.variants.push_back(std::move(variant));
    }
    for (InstanceResources& each : old.resources.instances) {
      each.variant.insert(0, kSinceVariant);
      build.resources.instances.push_back(std::move(each));
    }
    for (InstanceCodegen& each : old.codegen.instances) {
      each.variant.insert(0, kSinceVariant);
      build.codegen.instances.push_back(std::move(each));
    }
  }
  definition.compiler = build.compiler;
  for (const BuiltVariant& variant : build.variants) {
    definition.libraries[variant.name] = {variant.library, variant.library_sha256};
  }
  auto made = std::unique_ptr<StudySubject>(
      new StudySubject(std::make_shared<const StudyDefinition>(std::move(definition))));
  made->build_ = std::make_shared<const StudyBuild>(std::move(build));
  return made;
}

std::vector<PlannedDesign> StudySubject::Designs() const {
  if (definition_->since.empty()) return ListedSubject::Designs();
  PlannedDesign design = {.name = absl::StrCat(kSince, definition_->since),
                          .label = "each variant against itself at a commit",
                          .arms = {},
                          .floors = {kFloorArm},
                          .peers = false};
  std::vector<std::string> variants = {kStudyBase};
  for (const StudyClaim& claim : definition_->study.claim) {
    variants.push_back(VariantOf(definition_->study, claim));
  }
  for (const std::string& variant : variants) {
    const std::string was = absl::StrCat("was:", variant);
    design.arms.push_back(
        {.name = was, .config = absl::StrCat(kSinceVariant, variant), .role = kRoleBase});
    design.arms.push_back({.name = absl::StrCat("now:", variant),
                           .config = variant,
                           .role = kRoleStep,
                           .toggle = kSinceClaim,
                           .base = was});
  }
  const PlannedArm& first = design.arms.front();
  design.arms.push_back(
      {.name = "control:aa", .config = first.config, .role = kRoleAa, .base = first.name});
  return {std::move(design)};
}

// By any name of the commit, as it was built.
absl::StatusOr<PlannedDesign> StudySubject::FindDesign(std::string_view name) const {
  if (definition_->since.empty() || !name.starts_with(kSince))
    return ListedSubject::FindDesign(name);
  PlannedDesign design = Designs().front();
  design.name = std::string(name);
  return design;
}

absl::StatusOr<std::vector<std::string>> StudySubject::VariantsOf(const std::string& design) const {
  ASSIGN_OR_RETURN(const PlannedDesign planned,
                   FindDesign(design.empty() ? DefaultDesign() : design));
  std::vector<std::string> variants;
  const auto add = [&](const std::string& variant) {
    if (!absl::c_linear_search(variants, variant)) variants.push_back(variant);
  };
  for (const PlannedArm& arm : planned.arms) {
    add(arm.config);
    add(CodeNames(arm.config, {}).front());
  }
  // What results are held against.
  if (!definition_->study.check.variant.empty()) add(definition_->study.check.variant);
  return variants;
}

bool StudySubject::IsPredictedFor(const Claim& /*claim*/, std::string_view design,
                                  std::string_view /*candidate*/) const {
  return design == "one_on" || KindOf(design) == DesignKind::kCumulative;
}

absl::StatusOr<Parameters> StudySubject::ParametersOf(const ShapeInfo& problem) const {
  Parameters parameters;
  FieldPath path;
  FieldReader fields(problem.fields, path);
  for (const auto& [name, unused] : definition_->study.problem.front().parameters) {
    fields(name.c_str(), parameters[name], AtLeast{0});
  }
  RETURN_IF_ERROR(fields.status());
  return parameters;
}

absl::StatusOr<std::vector<ShapeInfo>> StudySubject::ParseProblems(std::string_view list) const {
  if (list.find('=') == list.npos) return ListedSubject::ParseProblems(list);
  std::vector<ShapeInfo> problems;
  const std::vector<std::string> names = absl::StrSplit(std::string(list), ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    if (name.find('=') == name.npos) {
      ASSIGN_OR_RETURN(const std::vector<ShapeInfo> named, ListedSubject::ParseProblems(name));
      absl::c_copy(named, std::back_inserter(problems));
      continue;
    }
    ASSIGN_OR_RETURN(const StudyProblem problem, ProblemFrom(name, definition_->study));
    problems.push_back(ShapeOf(definition_->study, problem));
  }
  return problems;
}

absl::Status StudySubject::CheckProblem(const ShapeInfo& problem) const {
  return ParametersOf(problem).status();
}

// A claim about the launch alone leaves the machine code as it is.
std::vector<std::string> StudySubject::CodeNames(const std::string& config,
                                                 const ShapeInfo& /*problem*/) const {
  std::vector<std::string> code;
  for (const Claim* technique : On(config)) {
    if (!technique->launch_side) code.emplace_back(technique->id);
  }
  const std::string name = code.empty() ? kStudyBase : absl::StrJoin(code, "+");
  return {config.starts_with(kSinceVariant) ? absl::StrCat(kSinceVariant, name) : name};
}

}  // namespace warpledger::ablations
