// SPDX-License-Identifier: Apache-2.0
// When the window of a stay begins and ends: at steps of an energy counter, which moves every
// 100 ms or so, so that its reading between two steps says when no joule was used.
//
// Contract of EnergyWindow: after `plan.settle_s` the window begins with the next step, and it ends
// with the first step that comes `plan.window_s` later (less kSharp) or more. Only a step that is
// known to kSharp counts: where a reading took longer, or came late, the next one is awaited. A
// counter that is not there, or shows no such step for kPatience, is done without: times alone
// bound the window then, and no energy is known. decisions/0045 says how exact this is.
//
// Contract of WatchedWindow: a thread of its own reads the counter every kReadEvery. NVML may take
// longer for an answer than the GPU has work queued, and who submits that work must not wait for
// it: Next() never does.
//
//   WatchedWindow window(plan, read_joules, [&] { sensors = ReadSensors(); });
//   timer.StayOn(graph, [&] { return window.Next(); });
//   const EnergyWindow& energy = window.Stop();
//   if (energy.joules()) watts = *energy.joules() / *energy.seconds();

#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "ablations/record/record.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "micro/harness/replay.h"

namespace warpledger::ablations {

// Joules up to now; nullopt: there is no counter.
using ReadJoules = std::function<std::optional<double>()>;

class EnergyWindow {
 public:
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);
  static constexpr absl::Duration kSharp = absl::Milliseconds(5);

  EnergyWindow(const AlonePlan& plan, ReadJoules read, std::function<absl::Time()> now = absl::Now)
      : plan_(plan), read_(std::move(read)), now_(std::move(now)) {}

  harness::Stay Next();

  // Of the window, from its first step to its last; nullopt where there was no counter.
  std::optional<double> joules() const;
  std::optional<double> seconds() const;

 private:
  struct Reading {
    absl::Time asked;
    absl::Time answered;
    double joules = 0;
  };
  struct Step {
    absl::Time at;
    double joules = 0;
  };

  // A step that was sharp, if the counter took one since the last reading.
  std::optional<Step> NextStep();
  // Whether the window may begin or end at `now`, which it might since `since`.
  bool IsEdge(absl::Time since, absl::Time now, std::optional<Step>* edge);

  const AlonePlan plan_;
  const ReadJoules read_;
  const std::function<absl::Time()> now_;
  std::optional<absl::Time> arrived_;
  std::optional<absl::Time> begin_;
  bool counts_ = true;
  std::optional<Reading> last_;
  std::optional<Step> first_step_;
  std::optional<Step> last_step_;
};

class WatchedWindow {
 public:
  static constexpr absl::Duration kReadEvery = absl::Milliseconds(2);

  // `at_end` is called in the thread that reads, once, when the window ends.
  WatchedWindow(const AlonePlan& plan, ReadJoules read, std::function<void()> at_end);
  WatchedWindow(const WatchedWindow&) = delete;
  WatchedWindow& operator=(const WatchedWindow&) = delete;
  ~WatchedWindow() { Stop(); }

  harness::Stay Next();
  // Waits for the thread.
  const EnergyWindow& Stop();

 private:
  EnergyWindow window_;  // the thread's until it ends
  const std::function<void()> at_end_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> stop_ = false;
  bool told_ = false;  // that it has begun
  std::thread thread_;
};

}  // namespace warpledger::ablations
