// SPDX-License-Identifier: Apache-2.0
// What runs calls and times them: a GPU (measure/cuda_machine.h), or a stand-in.
//
// Contract: one thread. A sample is one replay of some calls in a row, as
// micro/harness/graph_timer.h says.
//
//   absl::StatusOr<std::unique_ptr<TimedCalls>> calls = machine.Capture(plan, call, {});
//   absl::StatusOr<harness::ReplaySample> sample = machine.Replay(**calls, {});

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablations/plan/rig.h"
#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "micro/harness/replay.h"

namespace warpledger::ablations {

// Puts call number `index` of a replay on the stream.
using PutCall = std::function<absl::Status(int index, Stream stream)>;

class TimedCalls {
 public:
  virtual ~TimedCalls() = default;
  virtual int launches() const = 0;  // calls of a replay
  // What one call launches, for calls.jsonl. An error where that can't be read.
  virtual const absl::StatusOr<std::vector<std::string>>& lines() const = 0;
};

struct Capturing {
  harness::LaunchedBy by = harness::LaunchedBy::kGraph;
  harness::DescribeParameter describe;
};

// A sample's place in the record. Measured times don't depend on it; a machine that invents
// them needs it, to invent the same ones again in a run that is resumed.
struct SamplePlace {
  uint64_t seed = 0;
  int process = 0;
  int block = -1;  // -1: none is timed
  std::string arm;
  std::string shape;
};

struct Sensors {
  std::optional<double> temp_c;
  std::optional<double> power_w;
  std::optional<uint64_t> throttle;  // NVML clock event reasons
};

// One arm on its own: its replays without a pause, and what was read of the machine beside them.
struct Visit {
  double us = 0;        // per call
  double sm_mhz = 0;    // mean over the window; 0: not read
  int launches = 0;     // in the window
  double window_s = 0;  // that these took
  // Of the window: the machine waited for the host. nullopt: it has no queue.
  std::optional<double> idle_share;
  // Between two steps of the energy counter; nullopt: there is none.
  std::optional<double> energy_j;
  std::optional<double> energy_s;
  Sensors sensors;  // at the window's end, while the machine is at work
};

class Machine {
 public:
  virtual ~Machine() = default;

  virtual absl::StatusOr<GpuInfo> Describe() const = 0;
  // As many calls as the plan asks for, after a few to estimate their time.
  virtual absl::StatusOr<std::unique_ptr<TimedCalls>> Capture(const harness::ReplayPlan& plan,
                                                              const PutCall& call,
                                                              const Capturing& capturing) = 0;
  virtual absl::StatusOr<std::unique_ptr<TimedCalls>> CaptureExactly(int launches,
                                                                     const PutCall& call) = 0;
  // Replays once and waits.
  virtual absl::StatusOr<harness::ReplaySample> Replay(const TimedCalls& calls,
                                                       const SamplePlace& place) = 0;
  // Replays for `plan.settle_s`, and then for a window of `plan.window_s` at least.
  virtual absl::StatusOr<Visit> StayOn(const TimedCalls& calls, const AlonePlan& plan,
                                       const SamplePlace& place) = 0;
  virtual absl::Status CallNothing(Stream stream) = 0;  // an empty kernel: the floor
  virtual absl::Status CallDelay(int64_t cycles, Stream stream) = 0;
  virtual Sensors ReadSensors() = 0;
  // How long clocks take to rise before the first block, and how long they take to stand where
  // the power limit lowers them.
  virtual absl::Duration WarmUp() const = 0;
  virtual absl::Duration CappedWarmUp() const = 0;
  // Waits until all work is done. Work from now on is what a profiler looks at, or no more.
  virtual absl::Status MarkForProfiler(bool /*begin*/) { return absl::OkStatus(); }
  // What broke when a call failed: the `kind` of a line of broken.jsonl.
  virtual std::string FaultKind() = 0;
};

}  // namespace warpledger::ablations
