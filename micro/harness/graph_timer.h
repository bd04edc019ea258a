// SPDX-License-Identifier: Apache-2.0
// The one place where kernels are timed.
//
// Protocol: a sample is one replay of an instantiated CUDA graph that holds
// `launches` launches in a row; its time, by events on the same stream, divided
// by `launches`. One untimed replay of the same graph is queued ahead, so that
// event, graph and second event all wait on the GPU when the clock starts, the
// host's submission time stays outside, and no arm inherits the caches and
// clocks of the arm before it. Inputs rotate from launch to launch: the caller's
// function gets the launch's index. ablations/subjects/sdpa/peers follows the same protocol.
// Where the SM clock is wanted too, it is stamped before the untimed replay and after the
// second event, so that nothing stands between the replays.
//
// A stay is many replays without a pause (stay.h), with the clock over all of its window.
//
// By stream, the same launches are submitted one by one in place of both replays: the
// host's time for them counts where the GPU waits for it.
//
//   GraphTimer timer = …Create();
//   TimedGraph graph = timer.Capture(n, [&](int i, cudaStream_t s) { return Launch(…, s); });
//   double us = *timer.ReplayUs(graph);

#ifndef WARPLEDGER_MICRO_HARNESS_GRAPH_TIMER_H_
#define WARPLEDGER_MICRO_HARNESS_GRAPH_TIMER_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "micro/harness/call_lines.h"
#include "micro/harness/clock_probe.h"
#include "micro/harness/replay.h"  // IWYU pragma: export

namespace warpledger::harness {

// Launches number `index` on `stream`; called while the stream is captured.
using LaunchFunction = std::function<absl::Status(int index, cudaStream_t stream)>;

class TimedGraph {
 public:
  TimedGraph(TimedGraph&&) noexcept;
  TimedGraph& operator=(TimedGraph&&) noexcept;
  ~TimedGraph();
  int launches() const { return launches_; }
  // "by graph" or "by stream", and what one call launches (call_lines.h), as the graph
  // says that is replayed or, by stream, that the same launches make. An error where
  // that can't be read, which harms no timing.
  const absl::StatusOr<std::vector<std::string>>& call() const { return call_; }

 private:
  friend class GraphTimer;
  TimedGraph(cudaGraphExec_t exec, int launches) : exec_(exec), launches_(launches) {}
  cudaGraphExec_t exec_ = nullptr;
  int launches_ = 0;
  LaunchFunction by_stream_;  // null: the graph is replayed
  absl::StatusOr<std::vector<std::string>> call_;
};

class GraphTimer {
 public:
  static absl::StatusOr<GraphTimer> Create();
  GraphTimer(GraphTimer&&) noexcept;
  GraphTimer& operator=(GraphTimer&&) noexcept;
  ~GraphTimer();

  // By stream, `launch` is kept and called in each replay. `describe` adds to what call() says
  // of each kernel (call_lines.h).
  absl::StatusOr<TimedGraph> Capture(int launches, const LaunchFunction& launch,
                                     LaunchedBy by = LaunchedBy::kGraph,
                                     const DescribeParameter& describe = nullptr);
  // Replays once and waits. Microseconds per launch.
  absl::StatusOr<double> ReplayUs(const TimedGraph& graph);
  // The same, with the clock that it ran at.
  absl::StatusOr<ReplaySample> Replay(const TimedGraph& graph);
  // Replays until `next` has begun and ended the window.
  absl::StatusOr<StaySample> StayOn(const TimedGraph& graph, const std::function<Stay()>& next);
  // Captures as many launches as the plan asks for, after a few to warm up and
  // to estimate the kernel's time; these are kept where no more are asked for.
  absl::StatusOr<TimedGraph> CaptureForPlan(const ReplayPlan& plan, const LaunchFunction& launch,
                                            LaunchedBy by = LaunchedBy::kGraph,
                                            const DescribeParameter& describe = nullptr);

  cudaStream_t stream() const { return stream_; }

 private:
  GraphTimer() = default;
  absl::Status MakeClock();
  absl::Status Submit(const TimedGraph& graph);
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
  std::optional<ClockProbe> clock_;  // made by the first Replay()
};

// A kernel of one warp that does nothing: the floor of every timing.
cudaError_t LaunchEmptyKernel(cudaStream_t stream);

}  // namespace warpledger::harness

#endif  // WARPLEDGER_MICRO_HARNESS_GRAPH_TIMER_H_
