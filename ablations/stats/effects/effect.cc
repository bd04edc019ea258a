// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/effect.h"

#include <algorithm>
#include <cmath>

#include "ablations/stats/student_t.h"

namespace warpledger::analysis {

Interval Effect::At(double confidence) const {
  const double half_width = StudentCritical(1 - confidence, df) * error;
  return {log_ratio - half_width, log_ratio + half_width};
}

Interval Effect::RatioAt(double confidence) const {
  constexpr double kMost = 700;
  const Interval interval = At(confidence);
  return {std::exp(std::max(interval.low, -kMost)), std::exp(std::min(interval.high, kMost))};
}

double Effect::PValue(double null) const {
  if (std::isinf(error)) return 1;
  return StudentTwoSidedTail(std::fabs(log_ratio - null) / error, df);
}

double Effect::Least(double alpha) const {
  // The half-width is t(alpha) errors; power adds t(power) more.
  return error * (StudentCritical(alpha, df) + StudentCritical(2 * (1 - kPower), df));
}

bool Effect::IsEquivalent(double alpha, double delta) const {
  const Interval interval = At(1 - 2 * alpha);
  return interval.low >= -std::log1p(delta) && interval.high <= std::log1p(delta);
}

double Effect::DecisionPValue(double delta) const {
  const double different = PValue(0);
  const double room = std::log1p(delta) - std::fabs(log_ratio);
  if (std::isinf(error) || room <= 0) return different;
  return std::min(different, StudentTwoSidedTail(room / error, df) / 2);
}

}  // namespace warpledger::analysis
