// SPDX-License-Identifier: Apache-2.0
// Figures as summary.json holds them.

#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace warpledger::ablations {

// Empty for what is no number. What is below six significant digits depends on the machine's
// libm, and the bytes must not.
inline std::optional<double> SixDigits(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return std::strtod(text, nullptr);
}
inline std::optional<double> SixDigits(const std::optional<double>& value) {
  return value ? SixDigits(*value) : std::nullopt;
}

}  // namespace warpledger::ablations
