// SPDX-License-Identifier: Apache-2.0
// A listed subject on the CPU, which is its machine too.
//
// A class that derives from HostRig says what a call computes and what is right. Inputs and checks
// are here, capturing and timing in HostMachine. Outputs are held against Reference(): an
// element may be off by Tolerance() of the largest one.
//
// No machine code is read: what stands in codegen.json is the list of a variant's techniques and
// the opcodes that their claims name. So such a record proves the engine and its pages, and no
// technique.
//
//   class SumRig final : public HostRig {
//     using HostRig::HostRig;
//     std::vector<double> Compute(const Techniques& on, absl::Span<const float> in) const override;
//     std::vector<double> Reference(absl::Span<const float> in) const override;
//   };

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/subjects/host/listed_subject.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

// The CPU as the machine that calls are timed on.
//
// A sample is the time of its calls by the steady clock, divided by their number.
//
//   HostMachine machine;
//   ASSIGN_OR_RETURN(auto calls, machine.CaptureExactly(4, call));
class HostMachine : public Machine {
 public:
  absl::StatusOr<GpuInfo> Describe() const override;
  absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const harness::ReplayPlan& plan,
                                                      const PutCall& call,
                                                      const Capturing& capturing) override;
  absl::StatusOr<std::unique_ptr<TimedCalls>> CaptureExactly(int launches,
                                                             const PutCall& call) override;
  absl::StatusOr<harness::ReplaySample> Replay(const TimedCalls& calls,
                                               const SamplePlace& place) override;
  absl::StatusOr<Visit> StayOn(const TimedCalls& calls, const AlonePlan& plan,
                               const SamplePlace& place) override;
  absl::Status CallNothing(Stream stream) override;
  absl::Status CallDelay(int64_t cycles, Stream stream) override;  // a cycle is a nanosecond
  Sensors ReadSensors() override { return {}; }                    // none is read
  absl::Duration WarmUp() const override { return absl::ZeroDuration(); }
  absl::Duration CappedWarmUp() const override { return absl::ZeroDuration(); }
  std::string FaultKind() override { return "trap"; }

 protected:
  // Does the calls of a replay, in their order.
  static absl::Status CallAll(const TimedCalls& calls);
};

class HostRig : public Rig, public HostMachine {
 public:
  explicit HostRig(const ListedSubject& subject) : subject_(subject) {}

  // What a variant gives for the n numbers of a problem, as its techniques compute it.
  virtual std::vector<double> Compute(const std::vector<const Claim*>& on,
                                      absl::Span<const float> in) const = 0;
  // What it should give.
  virtual std::vector<double> Reference(absl::Span<const float> in) const = 0;
  virtual double Tolerance() const { return 1e-6; }
  // After a call that is timed, and after a check; a test may let something happen there.
  virtual void AfterCall(std::string_view /*config*/, const ShapeInfo& /*problem*/) const {}
  virtual absl::Status AfterCheck(const PlannedArm& /*arm*/, const ShapeInfo& /*problem*/,
                                  Check* /*check*/) {
    return absl::OkStatus();
  }

  const ListedSubject& subject() const { return subject_; }

  absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& problem,
                                              const BenchInputs& inputs) override;
  absl::Status WriteEvidence(const PlannedDesign& design, const std::vector<ShapeInfo>& problems,
                             const std::string& dir) const override;

 private:
  const ListedSubject& subject_;
};

}  // namespace warpledger::ablations
