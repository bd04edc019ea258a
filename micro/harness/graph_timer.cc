// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/graph_timer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/time/clock.h"
#include "kernels/common/cuda_status.h"
#include "micro/harness/stay.h"

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
      RETURN_IF_CUDA_ERROR(cudaEventCreate(&event), "creating an event");
    }
    return absl::OkStatus();
  }
  cudaEvent_t operator[](int i) const { return events_[static_cast<size_t>(i)]; }

 private:
  std::vector<cudaEvent_t> events_;
};

// Replays of one graph on a stream.
class StreamOfGraph final : public ReplayStream {
 public:
  StreamOfGraph(cudaStream_t stream, std::function<absl::Status()> submit, ClockProbe& clock)
      : stream_(stream), submit_(std::move(submit)), clock_(clock), events_(kEvents) {}
  absl::Status Create() { return events_.Create(); }

  absl::Status Submit() override { return submit_(); }
  absl::Status Record(int event) override {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(events_[event], stream_), "recording an event");
    return absl::OkStatus();
  }
  absl::Status Wait(int event) override {
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(events_[event]), "waiting for replays");
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsPast(int event) override {
    const cudaError_t state = cudaEventQuery(events_[event]);
    if (state == cudaErrorNotReady) {
      (void)cudaGetLastError();  // or the next launch would be blamed for it
      return false;
    }
    RETURN_IF_CUDA_ERROR(state, "asking for an event");
    return true;
  }
  absl::StatusOr<double> MsBetween(int from, int to) override {
    float ms = 0;
    RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&ms, events_[from], events_[to]),
                         "reading the events");
    return ms;
  }
  absl::Status StampClock(bool begin) override {
    return begin ? clock_.Begin(stream_) : clock_.End(stream_);
  }
  absl::Time Now() override { return absl::Now(); }

 private:
  const cudaStream_t stream_;
  const std::function<absl::Status()> submit_;
  ClockProbe& clock_;
  Events events_;
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
  StreamOfGraph stream(
      stream_, [&] { return Submit(graph); }, *clock_);
  RETURN_IF_ERROR(stream.Create());
  absl::StatusOr<StaySample> sample =
      harness::StayOn(stream, 1e-3 * *us * graph.launches(), graph.launches(), next);
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "waiting for replays");
  if (sample.ok()) sample->sm_mhz = clock_->Mhz();
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
