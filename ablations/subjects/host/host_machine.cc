// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/host/host_machine.h"

#include <chrono>
#include <utility>
#include <vector>

#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
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
