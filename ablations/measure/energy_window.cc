// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/energy_window.h"

namespace warpledger::ablations {

using harness::Stay;

std::optional<EnergyWindow::Step> EnergyWindow::NextStep() {
  const absl::Time asked = now_();
  const std::optional<double> joules = read_();
  if (!joules) {
    counts_ = false;
    return std::nullopt;
  }
  const Reading now = {asked, now_(), *joules};
  std::optional<Step> step;
  // Between the two readings' beginning and end is all that is known.
  if (last_ && last_->joules != now.joules && now.answered - last_->asked <= kSharp) {
    step = Step{last_->asked + (now.answered - last_->asked) / 2, now.joules};
  }
  last_ = now;
  return step;
}

bool EnergyWindow::IsEdge(absl::Time since, absl::Time now, std::optional<Step>* edge) {
  std::optional<Step> step;
  if (counts_) step = NextStep();
  if (now < since) return false;
  if (counts_ && !step && now - since > kPatience) counts_ = false;
  if (counts_ && !step) return false;
  *edge = step;
  return true;
}

Stay EnergyWindow::Next() {
  const absl::Time now = now_();
  if (!arrived_) arrived_ = now;
  if (!begin_) {
    const absl::Time settled = *arrived_ + absl::Seconds(plan_.settle_s);
    if (now < settled || !IsEdge(settled, now, &first_step_)) return Stay::kGoOn;
    begin_ = now;
    return Stay::kBeginWindow;
  }
  // A window of ten steps ends with the tenth, whenever in a millisecond that shows.
  const absl::Time whole =
      *begin_ + absl::Seconds(plan_.window_s) - (counts_ ? kSharp : absl::ZeroDuration());
  return IsEdge(whole, now, &last_step_) ? Stay::kEndWindow : Stay::kGoOn;
}

std::optional<double> EnergyWindow::joules() const {
  if (!first_step_ || !last_step_) return std::nullopt;
  return last_step_->joules - first_step_->joules;
}

std::optional<double> EnergyWindow::seconds() const {
  if (!first_step_ || !last_step_) return std::nullopt;
  return absl::ToDoubleSeconds(last_step_->at - first_step_->at);
}

WatchedWindow::WatchedWindow(const AlonePlan& plan, ReadJoules read, std::function<void()> at_end)
    : window_(plan, std::move(read)), at_end_(std::move(at_end)) {
  thread_ = std::thread([this] {
    while (!stop_) {
      const Stay what = window_.Next();
      if (what == Stay::kBeginWindow) begun_ = true;
      if (what == Stay::kEndWindow) {
        at_end_();
        ended_ = true;
        return;
      }
      absl::SleepFor(kReadEvery);
    }
  });
}

Stay WatchedWindow::Next() {
  // The end first: what has ended had begun, so that no end is told before its beginning.
  const bool ended = ended_;
  if (begun_ && !told_) {
    told_ = true;
    return Stay::kBeginWindow;
  }
  return ended ? Stay::kEndWindow : Stay::kGoOn;
}

const EnergyWindow& WatchedWindow::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return window_;
}

}  // namespace warpledger::ablations
