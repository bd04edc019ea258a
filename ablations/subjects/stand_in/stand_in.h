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

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_STAND_IN_STAND_IN_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_STAND_IN_STAND_IN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/plan/subject.h"

namespace warpledger::ablations {

const Subject& StandInSubject();

// Microseconds of a call of a variant on a problem, before noise.
double TrueUs(std::string_view config, const ShapeInfo& problem);

// What a test may let happen at a step of an arm; the step fails where it returns an error.
struct StandInStep {
  std::string arm;
  std::string shape;
  int block = -1;          // -1: the arm is being checked
  Check* check = nullptr;  // what its check is going to say; null in a block
};
using StandInHook = std::function<absl::Status(const StandInStep& step)>;

// The subject on the CPU, which is its machine too.
class StandInRig final : public Rig, public Machine {
 public:
  explicit StandInRig(StandInHook hook = nullptr) : hook_(std::move(hook)) {}

  absl::Status CheckMeasurable(const PlannedDesign& design,
                               const ShapeInfo& problem) const override;
  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& problem,
                                              const BenchInputs& inputs) override;
  absl::Status WriteEvidence(const PlannedDesign& design, const std::vector<ShapeInfo>& problems,
                             const std::string& dir) const override;

  absl::StatusOr<GpuInfo> Describe() const override;
  absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const harness::ReplayPlan& plan,
                                                      const PutCall& call,
                                                      const Capturing& capturing) override;
  absl::StatusOr<std::unique_ptr<TimedCalls>> CaptureExactly(int launches,
                                                             const PutCall& call) override;
  absl::StatusOr<harness::ReplaySample> Replay(const TimedCalls& calls,
                                               const SamplePlace& place) override;
  absl::Status CallNothing(Stream stream) override;
  absl::Status CallDelay(int64_t cycles, Stream stream) override;
  Sensors ReadSensors() override { return {.temp_c = 40, .power_w = 100, .throttle = 0}; }
  absl::Duration WarmUp() const override { return absl::ZeroDuration(); }
  absl::Duration CappedWarmUp() const override { return absl::ZeroDuration(); }
  std::string FaultKind() override { return "trap"; }

 private:
  friend class StandInVariant;
  StandInHook hook_;
  double spent_us_ = 0;  // by the calls since the replay began
};

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_STAND_IN_STAND_IN_H_
