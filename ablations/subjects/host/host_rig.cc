// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/host/host_rig.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/nearest.h"
#include "ablations/record/store.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

class HostVariant final : public BenchVariant {
 public:
  HostVariant(const PlannedArm& arm, const ShapeInfo& problem,
              const std::vector<std::vector<float>>& sets, HostRig& rig)
      : arm_(arm),
        problem_(problem),
        on_(rig.subject().On(arm.config)),
        sets_(sets),
        outputs_(sets.size()),
        rig_(rig) {}

  absl::Status Prepare() override { return absl::OkStatus(); }

  absl::StatusOr<Check> CheckCall() override {
    RETURN_IF_ERROR(Call(0, nullptr));
    const std::vector<double>& given = outputs_.front();
    const std::vector<double> wanted = rig_.Reference(sets_.front());
    Check check;
    double largest = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double error = i < given.size() ? std::abs(given[i] - wanted[i]) : INFINITY;
      check.max_err = std::max(check.max_err, error);
      check.mean_err += error / static_cast<double>(wanted.size());
      largest = std::max(largest, std::abs(wanted[i]));
    }
    check.max_err_limit = check.mean_err_limit = rig_.Tolerance() * largest;
    check.lse_err = std::nan("");
    check.guards_intact = check.bit_identical = true;
    check.correct = given.size() == wanted.size() && check.max_err <= check.max_err_limit;
    if (!check.correct) check.reason = "the result is wrong";
    RETURN_IF_ERROR(rig_.AfterCheck(arm_, problem_, &check));
    return check;
  }

  absl::StatusOr<Check> CheckReplay(absl::FunctionRef<absl::Status()> replay) override {
    absl::c_fill(outputs_, std::vector<double>());
    RETURN_IF_ERROR(replay());
    const std::vector<std::vector<double>> replayed = outputs_;
    for (size_t set = 0; set < sets_.size(); ++set) {
      RETURN_IF_ERROR(Call(static_cast<int>(set), nullptr));
    }
    Check check;
    check.lse_err = std::nan("");
    check.guards_intact = true;
    check.correct = check.bit_identical = replayed == outputs_;
    if (!check.correct) check.reason = "what a replay leaves differs from single calls";
    return check;
  }

  absl::Status Call(int set, Stream /*stream*/) const override {
    const auto index = static_cast<size_t>(set);
    outputs_[index] = rig_.Compute(on_, sets_[index]);
    rig_.AfterCall(arm_.config, problem_);
    return absl::OkStatus();
  }

 private:
  const PlannedArm arm_;
  const ShapeInfo& problem_;
  const std::vector<const Claim*> on_;
  const std::vector<std::vector<float>>& sets_;
  mutable std::vector<std::vector<double>> outputs_;  // of the last call on each set
  HostRig& rig_;
};

class HostBench final : public Bench {
 public:
  HostBench(ShapeInfo problem, const BenchInputs& inputs, HostRig& rig)
      : problem_(std::move(problem)), rig_(rig) {
    for (const uint64_t seed : inputs.seeds) {
      std::vector<float>& values = sets_.emplace_back(problem_.fields["n"].get<size_t>(), 1.0f);
      if (inputs.kind == "constant") continue;
      SplitMix64 random(seed);
      for (float& value : values) value = static_cast<float>(random.Uniform() + 0.5);
    }
  }

  int sets() const override { return static_cast<int>(sets_.size()); }
  absl::StatusOr<std::unique_ptr<BenchVariant>> Bind(const PlannedArm& arm,
                                                     std::string_view fault) override {
    if (!fault.empty()) return absl::InvalidArgumentError("no fault can be planted on the CPU");
    if (!rig_.subject().IsVariant(arm.config)) {
      return UnknownName("variant", arm.config, {rig_.subject().baseline()});
    }
    return std::make_unique<HostVariant>(arm, problem_, sets_, rig_);
  }

 private:
  const ShapeInfo problem_;
  std::vector<std::vector<float>> sets_;
  HostRig& rig_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> HostRig::Open(const ShapeInfo& problem,
                                                     const BenchInputs& inputs) {
  RETURN_IF_ERROR(subject_.CheckProblem(problem));
  return std::make_unique<HostBench>(problem, inputs, *this);
}

// A control reaches no code, so its hash is its base's.
absl::Status HostRig::WriteEvidence(const PlannedDesign& design,
                                    const std::vector<ShapeInfo>& /*problems*/,
                                    const std::string& dir) const {
  const std::string arch = ArchOf(*Describe());
  Codegen codegen = {.disassembler = "none", .instances = {}};
  std::vector<InstanceResources> resources;
  std::vector<InstanceLaunch> launches;
  std::set<std::string> seen;
  for (const PlannedArm& arm : design.arms) {
    if (!seen.insert(arm.config).second) continue;
    std::map<std::string, int64_t> opcodes = {{"FADD", 8}};
    std::string code = subject_.baseline();
    for (const Claim* technique : subject_.On(arm.config)) {
      if (technique->control) continue;
      absl::StrAppend(&code, "+", std::string(technique->id));
      const std::string opcode(technique->evidence.opcodes);
      if (!opcode.empty()) opcodes[opcode] = 4;
    }
    codegen.instances.push_back({arm.config, arch, absl::StrCat(HashName(code)), "", opcodes});
    resources.push_back({.variant = arm.config, .arch = arch, .registers = 16});
    launches.push_back({.variant = arm.config, .registers = 16, .threads = 1, .ctas_per_sm = 1});
  }
  const auto write = [&](const char* file, const nlohmann::ordered_json& json) {
    return WriteFileAtomically(absl::StrCat(dir, "/", file), DumpFile(json));
  };
  RETURN_IF_ERROR(write(kCodegenFile, ToJson(codegen)));
  RETURN_IF_ERROR(write(kResourcesFile, ToJson(ResourcesFile{resources})));
  return write(kLaunchFile, ToJson(LaunchFile{launches}));
}

}  // namespace warpledger::ablations
