// SPDX-License-Identifier: Apache-2.0
// A subject without a GPU, for tests of the engine and for a look at a whole run.
//
// Its variants sum an array on the CPU, and their results are checked. Their times are not
// measured: they are drawn from a model that is known (TrueUs), so that a test knows what the
// verdicts must be, and they are the same for a sample's place in a record, so that a run that
// was killed and resumed gives the bytes of one that was not.
//
//   StandInRig rig;
//   RETURN_IF_ERROR(RunWorker(job, StandInSubject(), rig, rig));

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/subjects/host/host_rig.h"
#include "ablations/subjects/host/listed_subject.h"

namespace warpledger::ablations {

const ListedSubject& StandInSubject();

// Microseconds of a call of a variant on a problem, before noise: at the nominal clock.
double TrueUs(std::string_view config, const ShapeInfo& problem);
// What the variant draws alone, and at what time. The machine lowers its clock until a variant
// draws kStandInLimitW at most, so that a technique is worth something else there.
inline constexpr double kStandInLimitW = 120;
double TrueWattsAlone(std::string_view config);
double TrueUsAlone(std::string_view config, const ShapeInfo& problem);
// For so long a visit still runs at the clock that the one before it has left.
inline constexpr double kStandInMemoryS = 0.25;

// What a test may let happen at a step of an arm; the step fails where it returns an error.
struct StandInStep {
  std::string arm;
  std::string shape;
  int block = -1;          // -1: the arm is being checked
  Check* check = nullptr;  // what its check is going to say; null in a block
};
using StandInHook = std::function<absl::Status(const StandInStep& step)>;

class StandInRig final : public HostRig {
 public:
  explicit StandInRig(StandInHook hook = nullptr)
      : HostRig(StandInSubject()), hook_(std::move(hook)) {}

  std::vector<double> Compute(const std::vector<const Claim*>& on,
                              absl::Span<const float> in) const override;
  std::vector<double> Reference(absl::Span<const float> in) const override;
  void AfterCall(std::string_view config, const ShapeInfo& problem) const override;
  absl::Status AfterCheck(const PlannedArm& arm, const ShapeInfo& problem, Check* check) override;

  absl::StatusOr<GpuInfo> Describe() const override;
  absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const harness::ReplayPlan& plan,
                                                      const PutCall& call,
                                                      const Capturing& capturing) override;
  absl::StatusOr<harness::ReplaySample> Replay(const TimedCalls& calls,
                                               const SamplePlace& place) override;
  absl::StatusOr<Visit> StayOn(const TimedCalls& calls, const AlonePlan& plan,
                               const SamplePlace& place) override;
  absl::Status CallNothing(Stream stream) override;
  absl::Status CallDelay(int64_t cycles, Stream stream) override;
  Sensors ReadSensors() override { return {.temp_c = 40, .power_w = 100, .throttle = 0}; }

 private:
  StandInHook hook_;
  // By the calls since the replay began: at the nominal clock, alone, and joules alone.
  mutable double spent_us_ = 0;
  mutable double spent_us_alone_ = 0;
  mutable double spent_j_alone_ = 0;
  double neighbour_w_ = 0;  // of the visit before; 0: there was none
};

}  // namespace warpledger::ablations
