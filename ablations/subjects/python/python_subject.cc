// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/python/python_subject.h"

#include <memory>
#include <regex>
#include <set>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/record/store.h"
#include "ablations/subjects/host/host_rig.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

// The claims' texts are the definition's. They stay where they are when it is moved.
SubjectList ListOf(const PythonDefinition& definition) {
  SubjectList list = {.name = "python",
                      .baseline = definition.callables.front().name,
                      .baseline_label = definition.callables.front().name,
                      .techniques = {},
                      .problems = definition.problems,
                      .input_kinds = {"stated"}};
  for (size_t i = 1; i < definition.callables.size(); ++i) {
    const PythonCallable& callable = definition.callables[i];
    list.techniques.push_back({.id = callable.name,
                               .label = callable.name,
                               .mechanism = "Its calls take less time than those of the base.",
                               .gate = definition.gate,
                               .evidence = {.launched = callable.launched}});
  }
  return list;
}

// The machine as the definition describes it, and no more: the worker is elsewhere.
class PythonMachine final : public HostMachine {
 public:
  explicit PythonMachine(GpuInfo gpu) : gpu_(std::move(gpu)) {}
  absl::StatusOr<GpuInfo> Describe() const override { return gpu_; }

 private:
  const GpuInfo gpu_;
};

class PythonRig final : public Rig {
 public:
  explicit PythonRig(const PythonDefinition& definition) : definition_(definition) {}

  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& /*problem*/,
                                              const BenchInputs& /*inputs*/) override {
    return absl::UnimplementedError("callables are measured by the worker of their definition");
  }

  // There is no machine code to show: what is called is what was named.
  absl::Status WriteEvidence(const PlannedDesign& /*design*/,
                             const std::vector<ShapeInfo>& /*problems*/,
                             const std::string& dir) const override {
    Codegen codegen;
    for (const PythonCallable& callable : definition_.callables) {
      codegen.instances.push_back(
          {callable.name, ArchOf(definition_.gpu), callable.sha256, "", {}});
    }
    return WriteFileAtomically(absl::StrCat(dir, "/", kCodegenFile), DumpFile(ToJson(codegen)));
  }

 private:
  const PythonDefinition& definition_;
};

absl::StatusOr<std::unique_ptr<const Subject>> FromDefinition(const nlohmann::ordered_json& json) {
  ASSIGN_OR_RETURN(PythonDefinition definition, FromJson<PythonDefinition>(json));
  return std::make_unique<const PythonSubject>(std::move(definition));
}

absl::StatusOr<std::unique_ptr<const Subject>> FromFile(const std::string& file,
                                                        const std::string& /*design*/) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  absl::StatusOr<PythonDefinition> definition = FromText<PythonDefinition>(text);
  if (definition.ok()) return std::make_unique<const PythonSubject>(*std::move(definition));
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", std::string(definition.status().message())));
}

absl::StatusOr<Device> Open(const Subject& subject) {
  const PythonDefinition& definition = static_cast<const PythonSubject&>(subject).definition();
  return Device{std::make_shared<PythonMachine>(definition.gpu),
                std::make_shared<PythonRig>(definition)};
}

[[maybe_unused]] const SubjectKindRegistrar kRegistrar({"python", &FromFile, &FromDefinition,
                                                        &Open});

}  // namespace

std::string PythonDefinition::WhyInvalid() const {
  if (callables.size() < 2) return "callables: there must be two or more, the base first";
  if (problems.empty()) return "problems: there must be one or more";
  std::set<std::string> names;
  for (const PythonCallable& callable : callables) {
    if (!names.insert(callable.name).second) {
      return absl::StrCat("callables: '", callable.name, "' is there twice");
    }
    try {
      const std::regex unused(callable.launched);
    } catch (const std::regex_error&) {
      return absl::StrCat("callables: '", callable.launched, "' is no regular expression");
    }
  }
  return "";
}

PythonSubject::PythonSubject(PythonDefinition definition)
    : ListedSubject(ListOf(definition)), definition_(std::move(definition)) {}

nlohmann::ordered_json PythonSubject::Definition() const { return ToJson(definition_); }

// Parameters are the program's own and of any kind.
absl::Status PythonSubject::CheckProblem(const ShapeInfo& problem) const {
  double work = 0;
  FieldPath path;
  FieldReader fields(problem.fields, path);
  fields("flops", work, Above{0});
  fields("min_bytes", work, Above{0});
  return fields.status();
}

}  // namespace warpledger::ablations
