// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/energy_window.h"

namespace warpledger::ablations {

using harness::Stay;

Stay EnergyWindow::Next(absl::Time now) {
  if (!arrived_) arrived_ = now;
  if (now - *arrived_ < absl::Seconds(plan_.settle_s)) return Stay::kGoOn;
  bool stepped = false;
  if (counts_) {
    const std::optional<double> joules = read_();
    if (!joules) {
      counts_ = false;
    } else if (!last_ || *joules != last_->joules) {
      stepped = last_.has_value();
      last_ = {now, *joules};
    } else if (now - last_->at > kPatience) {
      counts_ = false;
    }
  }
  if (counts_ && !stepped) return Stay::kGoOn;
  if (!begin_) {
    begin_ = now;
    first_step_ = last_;
    return Stay::kBeginWindow;
  }
  if (now - *begin_ < absl::Seconds(plan_.window_s)) return Stay::kGoOn;
  last_step_ = last_;
  return Stay::kEndWindow;
}

std::optional<double> EnergyWindow::joules() const {
  if (!counts_ || !first_step_ || !last_step_) return std::nullopt;
  return last_step_->joules - first_step_->joules;
}

std::optional<double> EnergyWindow::seconds() const {
  if (!counts_ || !first_step_ || !last_step_) return std::nullopt;
  return absl::ToDoubleSeconds(last_step_->at - first_step_->at);
}

}  // namespace warpledger::ablations
