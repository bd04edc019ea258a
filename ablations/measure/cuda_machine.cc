// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/cuda_machine.h"

#include <cuda_profiler_api.h>

#include <cstdio>
#include <utility>

#include "ablations/measure/energy_window.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "kernels/common/nvml.h"
#include "kernels/common/status_macros.h"
#include "micro/harness/graph_timer.h"
#include "micro/harness/spin_kernel.h"

namespace warpledger::ablations {
namespace {

// ablations/subjects/sdpa/peers/peer_rules.py does the same (WARM_UP_S, CAPPED_WARM_UP_S).
constexpr absl::Duration kWarmUp = absl::Milliseconds(300);
constexpr absl::Duration kCappedWarmUp = absl::Milliseconds(1000);

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

class Graph final : public TimedCalls {
 public:
  explicit Graph(harness::TimedGraph graph) : graph_(std::move(graph)) {}
  int launches() const override { return graph_.launches(); }
  const absl::StatusOr<std::vector<std::string>>& lines() const override { return graph_.call(); }
  const harness::TimedGraph& graph() const { return graph_; }

 private:
  harness::TimedGraph graph_;
};

absl::StatusOr<std::unique_ptr<TimedCalls>> Held(absl::StatusOr<harness::TimedGraph> graph) {
  if (!graph.ok()) return graph.status();
  return std::make_unique<Graph>(*std::move(graph));
}

class CudaMachine final : public Machine {
 public:
  CudaMachine(DeviceFacts device, harness::GraphTimer timer, std::optional<NvmlDevice> nvml)
      : device_(std::move(device)), timer_(std::move(timer)), nvml_(std::move(nvml)) {}

  absl::StatusOr<GpuInfo> Describe() const override {
    GpuInfo gpu;
    gpu.name = device_.name;
    gpu.slug = device_.slug;
    gpu.uuid = device_.uuid;
    gpu.compute_capability = absl::StrCat(device_.compute_major, ".", device_.compute_minor);
    gpu.sm_count = device_.sm_count;
    gpu.l2_bytes = device_.l2_bytes;
    gpu.memory_bytes = device_.memory_bytes;
    gpu.driver = absl::StrCat("CUDA ", CudaVersion(device_.driver_version));
    gpu.cuda_runtime = CudaVersion(device_.runtime_version);
    if (!nvml_) return gpu;
    if (const auto facts = nvml_->Facts(); facts.ok()) {
      gpu.driver = absl::StrCat(facts->driver_version, " (", gpu.driver, ")");
      gpu.ecc = facts->ecc;
      gpu.max_sm_clock_mhz = facts->max_sm_clock_mhz;
      gpu.max_memory_clock_mhz = facts->max_memory_clock_mhz;
      gpu.power_limit_w = facts->power_limit_w;
    }
    return gpu;
  }

  absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const harness::ReplayPlan& plan,
                                                      const PutCall& call,
                                                      const Capturing& capturing) override {
    return Held(timer_.CaptureForPlan(plan, call, capturing.by, capturing.describe));
  }
  absl::StatusOr<std::unique_ptr<TimedCalls>> CaptureExactly(int launches,
                                                             const PutCall& call) override {
    return Held(timer_.Capture(launches, call));
  }

  absl::StatusOr<harness::ReplaySample> Replay(const TimedCalls& calls,
                                               const SamplePlace& place) override {
    const harness::TimedGraph& graph = static_cast<const Graph&>(calls).graph();
    if (place.block >= 0) return timer_.Replay(graph);
    ASSIGN_OR_RETURN(const double us, timer_.ReplayUs(graph));
    return harness::ReplaySample{.us = us};
  }

  absl::StatusOr<Visit> StayOn(const TimedCalls& calls, const AlonePlan& plan,
                               const SamplePlace& /*place*/) override {
    Visit visit;
    // NVML is the other thread's until the window is stopped.
    WatchedWindow window(
        plan, [this] { return nvml_ ? nvml_->EnergyJ() : std::nullopt; },
        [&] { visit.sensors = ReadSensors(); });
    ASSIGN_OR_RETURN(
        const harness::StaySample sample,
        timer_.StayOn(static_cast<const Graph&>(calls).graph(), [&] { return window.Next(); }));
    const EnergyWindow& energy = window.Stop();
    visit.us = sample.us;
    visit.sm_mhz = sample.sm_mhz;
    visit.launches = sample.launches;
    visit.window_s = sample.window_s;
    visit.idle_share = sample.idle_share;
    visit.energy_j = energy.joules();
    visit.energy_s = energy.seconds();
    return visit;
  }

  absl::Status CallNothing(Stream stream) override {
    return CudaStatus(harness::LaunchEmptyKernel(stream), "launching the empty kernel");
  }
  absl::Status CallDelay(int64_t cycles, Stream stream) override {
    return CudaStatus(harness::LaunchSpin(cycles, stream), "launching a delay");
  }

  Sensors ReadSensors() override {
    if (!nvml_) return {};
    const absl::StatusOr<NvmlSample> now = nvml_->Sample();
    if (!now.ok()) return {};
    return {now->temperature_c, now->power_w, now->throttle_reasons};
  }

  absl::Duration WarmUp() const override { return kWarmUp; }
  absl::Duration CappedWarmUp() const override { return kCappedWarmUp; }

  absl::Status MarkForProfiler(bool begin) override {
    RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "waiting for the GPU"));
    return CudaStatus(begin ? cudaProfilerStart() : cudaProfilerStop(), "marking work");
  }

  std::string FaultKind() override {
    switch (cudaDeviceSynchronize()) {
      case cudaErrorLaunchFailure:  // what __trap() gives
        return "trap";
      case cudaErrorAssert:
        return "assert";
      case cudaErrorIllegalAddress:
        return "illegal_address";
      case cudaErrorMisalignedAddress:
        return "misaligned_address";
      case cudaErrorIllegalInstruction:
        return "illegal_instruction";
      case cudaErrorLaunchTimeout:
        return "no_answer";
      default:
        return "error";
    }
  }

 private:
  DeviceFacts device_;
  harness::GraphTimer timer_;
  std::optional<NvmlDevice> nvml_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine() {
  ASSIGN_OR_RETURN(DeviceFacts device, QueryDevice());
  std::optional<NvmlDevice> sensors;
  if (absl::StatusOr<NvmlDevice> nvml = NvmlDevice::Open(device.uuid); nvml.ok()) {
    sensors = *std::move(nvml);
  } else {
    std::fprintf(stderr, "warpledger: clocks and power are not recorded: %s\n",
                 std::string(nvml.status().message()).c_str());
  }
  ASSIGN_OR_RETURN(harness::GraphTimer timer, harness::GraphTimer::Create());
  return std::make_unique<CudaMachine>(std::move(device), std::move(timer), std::move(sensors));
}

}  // namespace warpledger::ablations
