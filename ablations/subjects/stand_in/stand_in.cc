// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/stand_in/stand_in.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>

#include "ablations/plan/known_subjects.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/nvml.h"
#include "kernels/common/random.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr char kBreaks[] = "skip_last";  // the technique that makes results wrong

// What the techniques are truly worth: time without / time with.
const std::map<std::string_view, double> kTrueRatios = {{"four_accumulators", 1.6},
                                                        {"prefetch", 1.05},
                                                        {"backwards", 0.95},
                                                        {kBreaks, 1.2},
                                                        {"null_toggle", 1}};

// What they truly draw at the nominal clock: with / without.
const std::map<std::string_view, double> kTruePowers = {{"four_accumulators", 1.5},
                                                        {"prefetch", 0.8},
                                                        {"backwards", 1},
                                                        {kBreaks, 1},
                                                        {"null_toggle", 1}};
constexpr double kBaselineW = 100;

double WattsAtNominalClock(std::string_view config) {
  double watts = kBaselineW;
  for (const Claim* technique : StandInSubject().On(config)) {
    watts *= kTruePowers.at(technique->id);
  }
  return watts;
}

// N(0, 1), of the stream that `seed` and `what` name.
double Normal(uint64_t seed, const std::string& what) {
  return SplitMix64(MixSeed(seed, HashName(what))).Normal();
}

constexpr double kNoise = 0.003;         // of a sample's logarithm
constexpr double kProcessNoise = 0.001;  // of all samples of a process
constexpr double kFloorUs = 0.5;
constexpr double kUsPerCycle = 5e-4;

absl::StatusOr<Device> Open() {
  const auto both = std::make_shared<StandInRig>();
  return Device{both, both};
}

}  // namespace

const ListedSubject& StandInSubject() {
  static const ListedSubject kSubject(
      {.name = "stand_in",
       .baseline = "one_accumulator",
       .baseline_label = "One accumulator",
       .techniques = {{.id = "four_accumulators",
                       .label = "Four accumulators",
                       .mechanism = "Four sums at once hide the latency of an addition.",
                       .predicted = {"sum_1k", 1.3, 2.0, "Nothing else limits a call."},
                       .evidence = {.opcodes = "FADD4"},
                       .prior = "None: the times are a model's"},
                      {.id = "prefetch",
                       .label = "Prefetch",
                       .mechanism = "The next elements arrive while these are summed.",
                       .evidence = {.opcodes = "PREFETCH"}},
                      {.id = "backwards",
                       .label = "From the last element to the first",
                       .mechanism = "Memory is read in an order that it does not foresee."},
                      {.id = kBreaks,
                       .label = "Skips the last element",
                       .mechanism = "Work that is left out takes no time."},
                      {.id = "null_toggle",
                       .label = "Null toggle (control)",
                       .mechanism = "It changes nothing.",
                       .control = true}},
       .problems = {SizedProblem("sum_1k", 1 << 10), SizedProblem("sum_64k", 1 << 16)},
       .input_kinds = {"normal", "constant"}});
  return kSubject;
}

WARPLEDGER_SUBJECT(StandInSubject, Open);

double TrueUs(std::string_view config, const ShapeInfo& problem) {
  double us = 2 + problem.flops() / 1024;
  for (const Claim* technique : StandInSubject().On(config)) {
    us /= kTrueRatios.at(technique->id);
  }
  return us;
}

double TrueWattsAlone(std::string_view config) {
  return std::min(kStandInLimitW, WattsAtNominalClock(config));
}

double TrueUsAlone(std::string_view config, const ShapeInfo& problem) {
  return TrueUs(config, problem) * std::max(1.0, WattsAtNominalClock(config) / kStandInLimitW);
}

std::vector<double> StandInRig::Compute(const std::vector<const Claim*>& on,
                                        absl::Span<const float> in) const {
  if (absl::c_any_of(on, [](const auto* each) { return each->id == kBreaks; })) {
    in.remove_suffix(1);
  }
  double sums[4] = {};
  for (size_t i = 0; i < in.size(); ++i) sums[i % 4] += in[i];
  return {sums[0] + sums[1] + sums[2] + sums[3]};
}

std::vector<double> StandInRig::Reference(absl::Span<const float> in) const {
  return {std::accumulate(in.begin(), in.end(), 0.0)};
}

void StandInRig::AfterCall(std::string_view config, const ShapeInfo& problem) const {
  spent_us_ += TrueUs(config, problem);
  spent_us_alone_ += TrueUsAlone(config, problem);
  spent_j_alone_ += 1e-6 * TrueUsAlone(config, problem) * TrueWattsAlone(config);
}

absl::Status StandInRig::AfterCheck(const PlannedArm& arm, const ShapeInfo& problem, Check* check) {
  return hook_ ? hook_({arm.name, problem.name, -1, check}) : absl::OkStatus();
}

absl::StatusOr<GpuInfo> StandInRig::Describe() const {
  ASSIGN_OR_RETURN(GpuInfo gpu, HostRig::Describe());
  gpu.name = "Stand-in";
  gpu.slug = "stand_in";
  gpu.uuid = "STAND-IN";
  // As many boards as a test wants.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible != '\0') absl::StrAppend(&gpu.uuid, "-", visible);
  return gpu;
}

absl::StatusOr<std::unique_ptr<TimedCalls>> StandInRig::Capture(const harness::ReplayPlan& plan,
                                                                const PutCall& call,
                                                                const Capturing& /*capturing*/) {
  return CaptureExactly(plan.min_launches, call);
}

absl::StatusOr<harness::ReplaySample> StandInRig::Replay(const TimedCalls& calls,
                                                         const SamplePlace& place) {
  spent_us_ = 0;
  RETURN_IF_ERROR(CallAll(calls));
  if (hook_ && place.block >= 0) {
    RETURN_IF_ERROR(hook_({place.arm, place.shape, place.block, nullptr}));
  }
  const std::string process = absl::StrCat(place.shape, " ", place.process);
  const double noise =
      kProcessNoise * Normal(place.seed, absl::StrCat(process, " ", place.arm)) +
      kNoise * Normal(place.seed, absl::StrCat(process, " ", place.arm, " ", place.block));
  return harness::ReplaySample{.us = spent_us_ / calls.launches() * std::exp(noise),
                               .sm_mhz = 1000};
}

absl::StatusOr<Visit> StandInRig::StayOn(const TimedCalls& calls, const AlonePlan& plan,
                                         const SamplePlace& place) {
  spent_us_alone_ = spent_j_alone_ = 0;
  ASSIGN_OR_RETURN(const harness::ReplaySample replay, Replay(calls, place));
  const double noise = replay.us * calls.launches() / spent_us_;
  const double watts = spent_j_alone_ / spent_us_alone_ * 1e6;
  const double left = std::max(0.0, 1 - plan.settle_s / kStandInMemoryS);
  const double neighbour = neighbour_w_ > 0 ? std::pow(neighbour_w_ / watts, 0.5 * left) : 1;
  neighbour_w_ = watts;
  Visit visit;
  visit.launches = calls.launches();
  visit.us = spent_us_alone_ / calls.launches() * noise * neighbour;
  visit.window_s = plan.window_s;
  visit.idle_share = 0;
  visit.sm_mhz = replay.sm_mhz * spent_us_ / spent_us_alone_ / neighbour;
  visit.energy_s = plan.window_s;
  visit.energy_j = watts * plan.window_s;
  visit.sensors = ReadSensors();
  visit.sensors.power_w = watts;
  if (watts >= kStandInLimitW) visit.sensors.throttle = kPowerCap;
  return visit;
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
