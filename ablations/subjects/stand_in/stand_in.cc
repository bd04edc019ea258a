// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/stand_in/stand_in.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/json_fields.h"
#include "ablations/base/nearest.h"
#include "ablations/plan/job.h"
#include "ablations/record/store.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr char kBaselineVariant[] = "one_accumulator";

// A technique, and what it is truly worth: time without / time with.
struct Technique {
  Claim claim;
  double ratio;
  bool control = false;
  bool breaks = false;
};
const Technique kTechniques[] = {
    {.claim = {.id = "four_accumulators",
               .label = "Four accumulators",
               .predicted = {"sum_1k", 1.3, 2.0},
               .evidence = {.opcodes = "FADD4"}},
     .ratio = 1.6},
    {.claim = {.id = "prefetch", .label = "Prefetch", .evidence = {.opcodes = "PREFETCH"}},
     .ratio = 1.05},
    {.claim = {.id = "backwards", .label = "From the last element to the first"}, .ratio = 0.95},
    {.claim = {.id = "skip_last", .label = "Skips the last element"}, .ratio = 1.2, .breaks = true},
    {.claim = {.id = "null_toggle", .label = "Null toggle (control)"}, .ratio = 1, .control = true},
};

std::vector<const Technique*> TechniquesOf(std::string_view config) {
  std::vector<const Technique*> on;
  const std::vector<std::string> ids = absl::StrSplit(std::string(config), '+');
  for (const Technique& technique : kTechniques) {
    if (absl::c_linear_search(ids, technique.claim.id)) on.push_back(&technique);
  }
  return on;
}

bool IsVariant(std::string_view config) {
  return config == kBaselineVariant ||
         static_cast<size_t>(1 + absl::c_count(config, '+')) == TechniquesOf(config).size();
}

// A configuration with one technique more.
std::string Plus(const std::string& config, std::string_view id) {
  return absl::StrCat(config == kBaselineVariant ? "" : config + "+", std::string(id));
}

ShapeInfo ProblemOf(const std::string& name, int n) {
  return {name, {{"n", n}, {"flops", 1.0 * n}, {"min_bytes", 4.0 * n}}};
}

void AddControls(const PlannedArm& of, PlannedDesign* design) {
  design->arms.push_back(
      {.name = "control:aa", .config = of.config, .role = kRoleAa, .base = of.name});
  design->arms.push_back({.name = "control:null_toggle",
                          .config = Plus(of.config, "null_toggle"),
                          .role = kRoleNull,
                          .toggle = "null_toggle",
                          .base = of.name});
}

PlannedDesign Ladder() {
  PlannedDesign design = {
      .name = "ladder",
      .label = "each technique on top of all before it",
      .arms = {{.name = kBaselineVariant, .config = kBaselineVariant, .role = kRoleBase}},
      .floors = {kFloorArm},
      .peers = false};
  for (const Technique& technique : kTechniques) {
    if (technique.control) continue;
    const PlannedArm& last = design.arms.back();
    design.arms.push_back({.name = absl::StrCat("ladder:", std::string(technique.claim.id)),
                           .config = Plus(last.config, technique.claim.id),
                           .role = kRoleStep,
                           .toggle = std::string(technique.claim.id),
                           .base = last.name});
  }
  AddControls(design.arms[design.arms.size() - 2], &design);
  return design;
}

PlannedDesign TwoByTwo() {
  PlannedDesign design = {
      .name = "factorial",
      .label = "every combination of two techniques",
      .arms = {{.name = "cell:none", .config = kBaselineVariant, .role = kRoleBase}},
      .floors = {kFloorArm},
      .peers = false};
  const auto add = [&](const std::string& base, const std::string& id, const std::string& ids) {
    design.arms.push_back({.name = absl::StrCat("cell:", ids),
                           .config = ids,
                           .role = kRoleStep,
                           .toggle = id,
                           .base = base});
  };
  add("cell:none", "four_accumulators", "four_accumulators");
  add("cell:none", "prefetch", "prefetch");
  add("cell:four_accumulators", "prefetch", "four_accumulators+prefetch");
  AddControls(PlannedArm(design.arms.back()), &design);
  return design;
}

class StandIn final : public Subject {
 public:
  StandIn() {
    for (const Technique& technique : kTechniques) claims_.push_back(technique.claim);
  }

  std::string_view name() const override { return "stand_in"; }
  absl::Span<const Claim> claims() const override { return claims_; }
  bool IsPredictedFor(const Claim& /*claim*/, std::string_view design,
                      std::string_view /*candidate*/) const override {
    return KindOf(design) == DesignKind::kCumulative;
  }

  std::vector<PlannedDesign> Designs() const override { return {Ladder(), TwoByTwo()}; }
  absl::StatusOr<PlannedDesign> FindDesign(std::string_view name) const override {
    std::vector<std::string> known;
    for (PlannedDesign& design : Designs()) {
      if (design.name == name) return std::move(design);
      known.push_back(design.name);
    }
    return UnknownName("design", name, known);
  }
  DesignKind KindOf(std::string_view design) const override {
    return design == "ladder" ? DesignKind::kCumulative : DesignKind::kFactorial;
  }
  std::optional<std::vector<InfeasibleCell>> Infeasible(
      std::string_view /*design*/) const override {
    return std::vector<InfeasibleCell>();
  }

  absl::StatusOr<std::vector<ShapeInfo>> ParseProblems(std::string_view list) const override {
    const std::vector<ShapeInfo> all = {ProblemOf("sum_1k", 1 << 10),
                                        ProblemOf("sum_64k", 1 << 16)};
    if (list == "all" || list == "ladder") return all;
    std::vector<ShapeInfo> problems;
    const std::vector<std::string> names =
        absl::StrSplit(std::string(list), ',', absl::SkipEmpty());
    for (const std::string& name : names) {
      const auto found = absl::c_find_if(all, [&](const ShapeInfo& p) { return p.name == name; });
      if (found == all.end()) return UnknownName("shape", name, {all[0].name, all[1].name});
      problems.push_back(*found);
    }
    return problems;
  }
  absl::Status CheckProblem(const ShapeInfo& problem) const override {
    int n = 0;
    FieldPath path;
    FieldReader fields(problem.fields, path);
    fields("n", n, Within{1, 1 << 24});
    return fields.status();
  }
  std::vector<std::string> InputKinds() const override { return {"normal", "constant"}; }

  absl::StatusOr<std::string> FindVariant(std::string_view name) const override {
    std::vector<std::string> known;
    for (const PlannedDesign& design : Designs()) {
      for (const PlannedArm& arm : design.arms) {
        if (arm.name == name) return arm.config;
        known.push_back(arm.name);
      }
    }
    if (IsVariant(name)) return std::string(name);
    return UnknownName("variant", name, known);
  }
  std::string LabelOf(std::string_view config) const override {
    return config == kBaselineVariant ? "One accumulator" : "";
  }
  std::vector<std::string> CodeNames(const std::string& config,
                                     const ShapeInfo& /*problem*/) const override {
    return {config};
  }
  bool IsOn(std::string_view config, const Claim& claim) const override {
    return absl::c_any_of(TechniquesOf(config),
                          [&](const Technique* each) { return each->claim.id == claim.id; });
  }
  std::string WhyNoVariant(const ShapeInfo& /*problem*/) const override { return ""; }

 private:
  std::vector<Claim> claims_;
};

// N(0, 1), of the stream that `seed` and `what` name.
double Normal(uint64_t seed, const std::string& what) {
  return SplitMix64(MixSeed(seed, HashName(what))).Normal();
}

constexpr double kNoise = 0.003;         // of a sample's logarithm
constexpr double kProcessNoise = 0.001;  // of all samples of a process
constexpr double kFloorUs = 0.5;
constexpr double kUsPerCycle = 5e-4;

class HeldCalls final : public TimedCalls {
 public:
  HeldCalls(int launches, PutCall call, std::vector<std::string> lines)
      : launches_(launches), call_(std::move(call)), lines_(std::move(lines)) {}
  int launches() const override { return launches_; }
  const absl::StatusOr<std::vector<std::string>>& lines() const override { return lines_; }
  const PutCall& call() const { return call_; }

 private:
  int launches_;
  PutCall call_;
  absl::StatusOr<std::vector<std::string>> lines_;
};

}  // namespace

const Subject& StandInSubject() {
  static const StandIn kSubject;
  return kSubject;
}

double TrueUs(std::string_view config, const ShapeInfo& problem) {
  double us = 2 + problem.flops() / 1024;
  for (const Technique* technique : TechniquesOf(config)) us /= technique->ratio;
  return us;
}

class StandInVariant final : public BenchVariant {
 public:
  StandInVariant(const PlannedArm& arm, const ShapeInfo& shape,
                 const std::vector<std::vector<float>>& sets, StandInRig& rig)
      : arm_(arm), shape_(shape), sets_(sets), sums_(sets.size()), rig_(rig) {}

  absl::Status Prepare() override { return absl::OkStatus(); }

  absl::StatusOr<Check> CheckCall() override {
    RETURN_IF_ERROR(Call(0, nullptr));
    Check check;
    double exact = 0;
    double magnitude = 0;
    for (const float value : sets_.front()) {
      exact += value;
      magnitude += std::abs(value);
    }
    check.max_err = check.mean_err = std::abs(sums_.front() - exact);
    check.max_err_limit = check.mean_err_limit = 1e-6 * magnitude;
    check.lse_err = std::nan("");
    check.guards_intact = check.bit_identical = true;
    check.correct = check.max_err <= check.max_err_limit;
    if (!check.correct) check.reason = "the sum is wrong";
    if (rig_.hook_) RETURN_IF_ERROR(rig_.hook_({arm_.name, shape_.name, -1, &check}));
    return check;
  }

  absl::StatusOr<Check> CheckReplay(absl::FunctionRef<absl::Status()> replay) override {
    absl::c_fill(sums_, std::nan(""));
    RETURN_IF_ERROR(replay());
    const std::vector<double> replayed = sums_;
    for (size_t set = 0; set < sets_.size(); ++set) {
      RETURN_IF_ERROR(Call(static_cast<int>(set), nullptr));
    }
    Check check;
    check.lse_err = std::nan("");
    check.guards_intact = true;
    check.correct = check.bit_identical = replayed == sums_;
    if (!check.correct) check.reason = "what a replay leaves differs from single calls";
    return check;
  }

  absl::Status Call(int set, Stream /*stream*/) const override {
    const std::vector<float>& values = sets_[static_cast<size_t>(set)];
    std::vector<double> sums(4, 0);
    const std::vector<const Technique*> on = TechniquesOf(arm_.config);
    const bool skips = absl::c_any_of(on, [](const Technique* each) { return each->breaks; });
    for (size_t i = 0; i + (skips ? 1 : 0) < values.size(); ++i) sums[i % 4] += values[i];
    sums_[static_cast<size_t>(set)] = sums[0] + sums[1] + sums[2] + sums[3];
    rig_.spent_us_ += TrueUs(arm_.config, shape_);
    return absl::OkStatus();
  }

 private:
  const PlannedArm arm_;
  const ShapeInfo& shape_;
  const std::vector<std::vector<float>>& sets_;
  mutable std::vector<double> sums_;  // what the last call on each set gave
  StandInRig& rig_;
};

namespace {

class StandInBench final : public Bench {
 public:
  StandInBench(ShapeInfo shape, const BenchInputs& inputs, StandInRig& rig)
      : shape_(std::move(shape)), rig_(rig) {
    for (const uint64_t seed : inputs.seeds) {
      std::vector<float>& values = sets_.emplace_back(shape_.fields["n"].get<size_t>(), 1.0f);
      if (inputs.kind == "constant") continue;
      SplitMix64 random(seed);
      for (float& value : values) value = static_cast<float>(random.Uniform() + 0.5);
    }
  }

  int sets() const override { return static_cast<int>(sets_.size()); }
  absl::StatusOr<std::unique_ptr<BenchVariant>> Bind(const PlannedArm& arm,
                                                     std::string_view fault) override {
    if (!fault.empty()) {
      return absl::InvalidArgumentError("the stand-in commits no fault by name");
    }
    if (!IsVariant(arm.config)) return UnknownName("variant", arm.config, {kBaselineVariant});
    return std::make_unique<StandInVariant>(arm, shape_, sets_, rig_);
  }
  absl::Status CallFloor(std::string_view name, int /*set*/, Stream /*stream*/) const override {
    return absl::InternalError(absl::StrCat("there is no floor ", std::string(name)));
  }

 private:
  const ShapeInfo shape_;
  std::vector<std::vector<float>> sets_;
  StandInRig& rig_;
};

}  // namespace

absl::Status StandInRig::CheckMeasurable(const PlannedDesign& /*design*/,
                                         const ShapeInfo& problem) const {
  return StandInSubject().CheckProblem(problem);
}

absl::StatusOr<std::unique_ptr<Bench>> StandInRig::Open(const ShapeInfo& problem,
                                                        const BenchInputs& inputs) {
  RETURN_IF_ERROR(StandInSubject().CheckProblem(problem));
  return std::make_unique<StandInBench>(problem, inputs, *this);
}

// The null toggle reaches no code, so its hash is its base's.
absl::Status StandInRig::WriteEvidence(const PlannedDesign& design,
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
    std::string code = kBaselineVariant;
    for (const Technique* technique : TechniquesOf(arm.config)) {
      if (technique->control) continue;
      code = Plus(code, technique->claim.id);
      const std::string opcode(technique->claim.evidence.opcodes);
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

absl::StatusOr<GpuInfo> StandInRig::Describe() const {
  GpuInfo gpu;
  gpu.name = "Stand-in";
  gpu.slug = "stand_in";
  gpu.uuid = "STAND-IN";
  gpu.compute_capability = "1.0";
  gpu.sm_count = 1;
  gpu.l2_bytes = 1 << 20;
  gpu.memory_bytes = 1 << 30;
  gpu.driver = gpu.cuda_runtime = "none";
  return gpu;
}

absl::StatusOr<std::unique_ptr<TimedCalls>> StandInRig::Capture(const harness::ReplayPlan& plan,
                                                                const PutCall& call,
                                                                const Capturing& /*capturing*/) {
  return CaptureExactly(plan.min_launches, call);
}

absl::StatusOr<std::unique_ptr<TimedCalls>> StandInRig::CaptureExactly(int launches,
                                                                       const PutCall& call) {
  RETURN_IF_ERROR(call(0, nullptr));
  return std::make_unique<HeldCalls>(launches, call, std::vector<std::string>{"by call", "sum"});
}

absl::StatusOr<harness::ReplaySample> StandInRig::Replay(const TimedCalls& calls,
                                                         const SamplePlace& place) {
  const auto& held = static_cast<const HeldCalls&>(calls);
  spent_us_ = 0;
  for (int i = 0; i < held.launches(); ++i) RETURN_IF_ERROR(held.call()(i, nullptr));
  if (hook_ && place.block >= 0) {
    RETURN_IF_ERROR(hook_({place.arm, place.shape, place.block, nullptr}));
  }
  const std::string process = absl::StrCat(place.shape, " ", place.process);
  const double noise =
      kProcessNoise * Normal(place.seed, absl::StrCat(process, " ", place.arm)) +
      kNoise * Normal(place.seed, absl::StrCat(process, " ", place.arm, " ", place.block));
  return harness::ReplaySample{.us = spent_us_ / held.launches() * std::exp(noise), .sm_mhz = 1000};
}

absl::Status StandInRig::CallNothing(Stream /*stream*/) {
  spent_us_ += kFloorUs;
  return absl::OkStatus();
}

absl::Status StandInRig::CallDelay(int64_t cycles, Stream /*stream*/) {
  spent_us_ += kUsPerCycle * static_cast<double>(cycles);
  return absl::OkStatus();
}

}  // namespace warpledger::ablations
