// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/host/host_rig.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

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

namespace {

int64_t SteadyNanos() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class HeldCalls final : public TimedCalls {
 public:
  HeldCalls(int launches, PutCall call) : launches_(launches), call_(std::move(call)) {}
  int launches() const override { return launches_; }
  const absl::StatusOr<std::vector<std::string>>& lines() const override { return lines_; }
  const PutCall& call() const { return call_; }

 private:
  const int launches_;
  const PutCall call_;
  const absl::StatusOr<std::vector<std::string>> lines_ =
      std::vector<std::string>{"by call", "a function on the CPU"};
};

}  // namespace

absl::StatusOr<GpuInfo> HostMachine::Describe() const {
  GpuInfo gpu;
  gpu.name = "CPU";
  gpu.slug = "cpu";
  gpu.uuid = "CPU";
  gpu.compute_capability = "1.0";
  gpu.sm_count = 1;
  gpu.l2_bytes = 1 << 20;
  gpu.memory_bytes = 1 << 30;
  gpu.driver = gpu.cuda_runtime = "none";
  return gpu;
}

absl::Status HostMachine::CallAll(const TimedCalls& calls) {
  const auto& held = static_cast<const HeldCalls&>(calls);
  for (int i = 0; i < held.launches(); ++i) RETURN_IF_ERROR(held.call()(i, nullptr));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TimedCalls>> HostMachine::Capture(const harness::ReplayPlan& plan,
                                                                 const PutCall& call,
                                                                 const Capturing& /*capturing*/) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TimedCalls> few, CaptureExactly(plan.min_launches, call));
  ASSIGN_OR_RETURN(const harness::ReplaySample sample, Replay(*few, {}));
  return CaptureExactly(harness::PlanLaunches(plan, sample.us), call);
}

absl::StatusOr<std::unique_ptr<TimedCalls>> HostMachine::CaptureExactly(int launches,
                                                                        const PutCall& call) {
  RETURN_IF_ERROR(call(0, nullptr));
  return std::make_unique<HeldCalls>(launches, call);
}

absl::StatusOr<harness::ReplaySample> HostMachine::Replay(const TimedCalls& calls,
                                                          const SamplePlace& /*place*/) {
  const int64_t begin = SteadyNanos();
  RETURN_IF_ERROR(CallAll(calls));
  const int64_t end = SteadyNanos();
  return harness::ReplaySample{.us = 1e-3 * static_cast<double>(end - begin) / calls.launches(),
                               .sm_mhz = 0};
}

absl::StatusOr<Visit> HostMachine::StayOn(const TimedCalls& calls, const AlonePlan& plan,
                                          const SamplePlace& place) {
  const auto nanos = [](double seconds) { return static_cast<int64_t>(1e9 * seconds); };
  const int64_t settled = SteadyNanos() + nanos(plan.settle_s);
  while (SteadyNanos() < settled) RETURN_IF_ERROR(Replay(calls, place).status());
  Visit visit;
  const int64_t begin = SteadyNanos();
  int64_t now = begin;
  while (visit.launches == 0 || now < begin + nanos(plan.window_s)) {
    RETURN_IF_ERROR(Replay(calls, place).status());
    visit.launches += calls.launches();
    now = SteadyNanos();
  }
  visit.window_s = 1e-9 * static_cast<double>(now - begin);
  visit.us = 1e6 * visit.window_s / visit.launches;
  visit.sensors = ReadSensors();
  return visit;
}

absl::Status HostMachine::CallNothing(Stream /*stream*/) { return absl::OkStatus(); }

absl::Status HostMachine::CallDelay(int64_t cycles, Stream /*stream*/) {
  const int64_t end = SteadyNanos() + cycles;
  while (SteadyNanos() < end) continue;
  return absl::OkStatus();
}

}  // namespace warpledger::ablations
