// SPDX-License-Identifier: Apache-2.0
// Callables of a Python program as the engine's subject.
//
// The package `warpledger` writes the definition: who is compared on what, on which device, and the
// command that starts a worker. That worker is Python and takes the place of the program's own; it
// prints the lines that measure/worker.h describes. Records are judged by the definition alone.
//
//   warpledger run --callables=definition.json --out=record

#pragma once

#include <map>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/subjects/host/listed_subject.h"

namespace warpledger::ablations {

struct PythonCallable {
  std::string name;
  std::string sha256;    // of its name and of its source, where Python knows that
  std::string launched;  // regex over what a call launches; empty: not looked at

  template <typename F>
  void Visit(F& f) {
    f("name", name, NotEmpty{}, PlainName{},
      Must{"a name without '+', ':', ',', '@' and blanks",
           [](const std::string& text) { return text.find_first_of("+:, @") == text.npos; }});
    f("sha256", sha256, NotEmpty{});
    f("launched", launched, kOnlyWhereSet, kPatternBytes);
  }
};

struct PythonDefinition {
  std::vector<std::string> worker;  // program and arguments
  GpuInfo gpu;
  double gate = 1.05;
  std::vector<PythonCallable> callables;  // the first is the base
  std::vector<ShapeInfo> problems;
  std::map<std::string, std::string> versions;  // of what the worker runs on

  std::string WhyInvalid() const;
  template <typename F>
  void Visit(F& f) {
    f("worker", worker, Must{"a program", [](const auto& all) { return !all.empty(); }});
    f("gpu", gpu);
    f("gate", gate, Above{1, "a ratio"});
    FIELDS(callables, problems, versions);
  }
};

class PythonSubject final : public ListedSubject {
 public:
  explicit PythonSubject(PythonDefinition definition);

  const PythonDefinition& definition() const { return definition_; }
  nlohmann::ordered_json Definition() const override;
  std::vector<std::string> Worker() const override { return definition_.worker; }
  std::string DefaultDesign() const override { return "one_on"; }
  absl::Status CheckProblem(const ShapeInfo& problem) const override;

 private:
  const PythonDefinition definition_;
};

}  // namespace warpledger::ablations
