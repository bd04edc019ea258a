// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/graph_timer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "kernels/common/cuda_status.h"

namespace warpledger::harness {
namespace {

constexpr int kEstimateReplays = 3;
constexpr double kSettled = 2;  // replays of the target's length

void Report(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "warpledger: %s: %s\n", doing, cudaGetErrorString(error));
  }
}

// Of a stream's progress; destroyed with this.
class Events {
 public:
  explicit Events(size_t count) : events_(count, nullptr) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (const cudaEvent_t event : events_) {
      if (event != nullptr) Report(cudaEventDestroy(event), "destroying an event");
    }
  }
  absl::Status Create() {
    for (cudaEvent_t& event : events_) {
      RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                           "creating an event");
    }
    return absl::OkStatus();
  }
  size_t size() const { return events_.size(); }
  cudaEvent_t operator[](size_t i) const { return events_[i]; }

 private:
  std::vector<cudaEvent_t> events_;
};

}  // namespace

TimedGraph::TimedGraph(TimedGraph&& other) noexcept
    : exec_(std::exchange(other.exec_, nullptr)),
      launches_(other.launches_),
      by_stream_(std::move(other.by_stream_)),
      call_(std::move(other.call_)) {}

TimedGraph& TimedGraph::operator=(TimedGraph&& other) noexcept {
  std::swap(exec_, other.exec_);
  std::swap(launches_, other.launches_);
  std::swap(by_stream_, other.by_stream_);
  std::swap(call_, other.call_);
  return *this;
}

TimedGraph::~TimedGraph() {
  if (exec_ != nullptr) Report(cudaGraphExecDestroy(exec_), "destroying a graph");
}

absl::StatusOr<GraphTimer> GraphTimer::Create() {
  GraphTimer timer;
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&timer.stream_, cudaStreamNonBlocking),
                       "creating a stream");
  RETURN_IF_CUDA_ERROR(cudaEventCreate(&timer.start_), "creating an event");
  RETURN_IF_CUDA_ERROR(cudaEventCreate(&timer.stop_), "creating an event");
  return timer;
}

GraphTimer::GraphTimer(GraphTimer&& other) noexcept
    : stream_(std::exchange(other.stream_, nullptr)),
      start_(std::exchange(other.start_, nullptr)),
      stop_(std::exchange(other.stop_, nullptr)),
      clock_(std::move(other.clock_)) {}

GraphTimer& GraphTimer::operator=(GraphTimer&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(start_, other.start_);
  std::swap(stop_, other.stop_);
  std::swap(clock_, other.clock_);
  return *this;
}

GraphTimer::~GraphTimer() {
  if (start_ != nullptr) Report(cudaEventDestroy(start_), "destroying an event");
  if (stop_ != nullptr) Report(cudaEventDestroy(stop_), "destroying an event");
  if (stream_ != nullptr) Report(cudaStreamDestroy(stream_), "destroying a stream");
}

absl::StatusOr<TimedGraph> GraphTimer::Capture(int launches, const LaunchFunction& launch,
                                               LaunchedBy by, const DescribeParameter& describe) {
  RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                       "starting a graph capture");
  absl::Status launched = absl::OkStatus();
  for (int i = 0; i < launches && launched.ok(); ++i) launched = launch(i, stream_);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
  if (!launched.ok()) {
    if (graph != nullptr) Report(cudaGraphDestroy(graph), "destroying a graph");
    return launched;
  }
  RETURN_IF_CUDA_ERROR(ended, "ending a graph capture");
  absl::StatusOr<std::vector<std::string>> call = CallLines(graph, launches, describe);
  if (!call.ok()) {
    (void)cudaGetLastError();  // or the next launch would be blamed for it
  } else {
    call->insert(call->begin(), by == LaunchedBy::kStream ? "by stream" : "by graph");
  }
  cudaGraphExec_t exec = nullptr;
  const cudaError_t instantiated = cudaGraphInstantiate(&exec, graph, 0);
  Report(cudaGraphDestroy(graph), "destroying a graph");
  RETURN_IF_CUDA_ERROR(instantiated, "instantiating a graph");
  TimedGraph timed(exec, launches);
  timed.call_ = std::move(call);
  if (by == LaunchedBy::kStream) timed.by_stream_ = launch;
  RETURN_IF_CUDA_ERROR(cudaGraphUpload(exec, stream_), "uploading a graph");
  return timed;
}

absl::Status GraphTimer::Submit(const TimedGraph& graph) {
  if (graph.by_stream_ == nullptr) {
    RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph.exec_, stream_), "launching a graph");
    return absl::OkStatus();
  }
  for (int i = 0; i < graph.launches(); ++i) RETURN_IF_ERROR(graph.by_stream_(i, stream_));
  return absl::OkStatus();
}

absl::StatusOr<double> GraphTimer::ReplayUs(const TimedGraph& graph) {
  RETURN_IF_ERROR(Submit(graph));
  RETURN_IF_CUDA_ERROR(cudaEventRecord(start_, stream_), "recording an event");
  RETURN_IF_ERROR(Submit(graph));
  RETURN_IF_CUDA_ERROR(cudaEventRecord(stop_, stream_), "recording an event");
  RETURN_IF_CUDA_ERROR(cudaEventSynchronize(stop_), "waiting for a replay");
  float ms = 0;
  RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&ms, start_, stop_), "reading the events");
  return static_cast<double>(ms) * 1000.0 / graph.launches();
}

absl::Status GraphTimer::MakeClock() {
  if (clock_) return absl::OkStatus();
  absl::StatusOr<ClockProbe> clock = ClockProbe::Create();
  if (!clock.ok()) return clock.status();
  clock_ = *std::move(clock);
  return absl::OkStatus();
}

absl::StatusOr<StaySample> GraphTimer::StayOn(const TimedGraph& graph,
                                              const std::function<Stay()>& next) {
  RETURN_IF_ERROR(MakeClock());
  const absl::StatusOr<double> us = ReplayUs(graph);
  if (!us.ok()) return us.status();
  constexpr size_t kMostQueued = 64;
  const double replays = 1000 * kQueuedMs / (*us * graph.launches());
  Events queued(std::clamp(static_cast<size_t>(std::ceil(replays)), size_t{2}, kMostQueued));
  RETURN_IF_ERROR(queued.Create());
  int64_t launches = 0;
  bool in_window = false;
  for (size_t at = 0;; at = (at + 1) % queued.size()) {
    // One that was never recorded is past.
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(queued[at]), "waiting for a replay");
    const Stay what = next();
    if (what == Stay::kBeginWindow) {
      RETURN_IF_ERROR(clock_->Begin(stream_));
      RETURN_IF_CUDA_ERROR(cudaEventRecord(start_, stream_), "recording an event");
      in_window = true;
    }
    // A window holds a replay at least.
    if (what == Stay::kEndWindow && launches > 0) break;
    RETURN_IF_ERROR(Submit(graph));
    RETURN_IF_CUDA_ERROR(cudaEventRecord(queued[at], stream_), "recording an event");
    launches += in_window ? graph.launches() : 0;
  }
  RETURN_IF_CUDA_ERROR(cudaEventRecord(stop_, stream_), "recording an event");
  RETURN_IF_ERROR(clock_->End(stream_));
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "waiting for replays");
  float ms = 0;
  RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&ms, start_, stop_), "reading the events");
  StaySample sample;
  sample.us = 1000.0 * static_cast<double>(ms) / static_cast<double>(launches);
  sample.sm_mhz = clock_->Mhz();
  sample.launches = static_cast<int>(launches);
  sample.window_s = 1e-3 * static_cast<double>(ms);
  return sample;
}

absl::StatusOr<ReplaySample> GraphTimer::Replay(const TimedGraph& graph) {
  RETURN_IF_ERROR(MakeClock());
  RETURN_IF_ERROR(clock_->Begin(stream_));
  const absl::StatusOr<double> us = ReplayUs(graph);
  if (!us.ok()) return us.status();
  RETURN_IF_ERROR(clock_->End(stream_));
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "waiting for stamps of the clock");
  return ReplaySample{.us = *us, .sm_mhz = clock_->Mhz()};
}

absl::StatusOr<TimedGraph> GraphTimer::CaptureForPlan(const ReplayPlan& plan,
                                                      const LaunchFunction& launch, LaunchedBy by,
                                                      const DescribeParameter& describe) {
  absl::StatusOr<TimedGraph> trial = Capture(plan.multiple_of, launch, by, describe);
  if (!trial.ok()) return trial.status();
  double kernel_us = 0;
  for (int i = 0; i < kEstimateReplays; ++i) {
    const absl::StatusOr<double> us = ReplayUs(*trial);
    if (!us.ok()) return us.status();
    kernel_us = i == 0 ? *us : std::min(kernel_us, *us);
    // However low the clocks are yet, such a kernel gets the fewest launches that may be.
    if (*us * trial->launches() >= kSettled * plan.target_us) break;
  }
  const int launches = PlanLaunches(plan, kernel_us);
  if (launches == trial->launches()) return trial;
  return Capture(launches, launch, by, describe);
}

}  // namespace warpledger::harness
