// SPDX-License-Identifier: Apache-2.0
// The CPU as the machine that calls are timed on.
//
// A sample is the time of its calls by the steady clock, divided by their number.
//
//   HostMachine machine;
//   ASSIGN_OR_RETURN(auto calls, machine.CaptureExactly(4, call));

#pragma once

#include <memory>
#include <string>

#include "ablations/plan/machine.h"

namespace warpledger::ablations {

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

}  // namespace warpledger::ablations
