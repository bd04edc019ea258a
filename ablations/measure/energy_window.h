// SPDX-License-Identifier: Apache-2.0
// When the window of a stay begins and ends: at steps of an energy counter, which moves every
// 100 ms or so, so that its reading between two steps says when no joule was used.
//
// Contract: after `plan.settle_s` the window begins with the next step, and it ends with the first
// step that comes `plan.window_s` later or more. A counter that is not there, or stands for
// kPatience, is done without: times alone bound the window then, and no energy is known.
// decisions/0045 says how exact this is.
//
//   EnergyWindow window(plan, read_joules);
//   timer.StayOn(graph, [&] { return window.Next(absl::Now()); });
//   if (window.joules()) watts = *window.joules() / *window.seconds();

#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "ablations/record/record.h"
#include "absl/time/time.h"
#include "micro/harness/replay.h"

namespace warpledger::ablations {

class EnergyWindow {
 public:
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);

  // `read`: joules up to now; nullopt: there is no counter.
  EnergyWindow(const AlonePlan& plan, std::function<std::optional<double>()> read)
      : plan_(plan), read_(std::move(read)) {}

  harness::Stay Next(absl::Time now);

  // Of the window, from its first step to its last; nullopt where there was no counter.
  std::optional<double> joules() const;
  std::optional<double> seconds() const;

 private:
  struct Step {
    absl::Time at;
    double joules = 0;
  };

  const AlonePlan plan_;
  const std::function<std::optional<double>()> read_;
  std::optional<absl::Time> arrived_;
  std::optional<absl::Time> begin_;
  bool counts_ = true;
  std::optional<Step> last_;  // the counter as it was read last, and since when
  std::optional<Step> first_step_;
  std::optional<Step> last_step_;
};

}  // namespace warpledger::ablations
