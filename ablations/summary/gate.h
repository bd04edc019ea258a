// SPDX-License-Identifier: Apache-2.0
// What the regression gate (judge/compare/gate.h) says of a record: a value that pages print.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::summary {

struct GateOptions {
  double tolerance = 0.02;  // largest slow-down that is let through, as a fraction
  bool allow_other_gpu = false;
  double confidence = 0.95;
  int bootstrap_resamples = 20000;
  uint64_t bootstrap_seed = 20240601;
};

enum class GateOutcome { kPass, kRegression, kCannotTell, kBroken, kMissing, kNew };

// A regression that was shown stays shown, whatever else could not be compared;
// hence it goes first.
inline constexpr int kGateRegression = 1;
inline constexpr int kGateNotCompared = 3;
inline constexpr int kGateCannotTell = 2;
inline constexpr int kGatePass = 0;

struct GateCell {
  std::string variant;
  std::string config;
  std::string shape;
  GateOutcome outcome = GateOutcome::kPass;
  std::string reason;
  std::optional<double> baseline_us;
  std::optional<double> record_us;
  // time(record) / time(baseline) - 1, where both have samples; no bounds where a side has one
  // process.
  std::optional<double> change;
  std::optional<double> low;
  std::optional<double> high;
  double adjusted_confidence = 0;
};

struct GateResult {
  GateOptions options;
  std::string baseline;  // run ids
  std::string record;
  std::string gpu;          // the record's
  std::string why_refused;  // the records as a whole; then there are no cells
  std::vector<GateCell> cells;
  std::vector<std::string> notes;  // references that moved, conditions that differ
  int exit = kGatePass;

  int64_t Count(GateOutcome outcome) const {
    return std::count_if(cells.begin(), cells.end(),
                         [&](const GateCell& cell) { return cell.outcome == outcome; });
  }
};

// "+0.52%" or "+12.3%": two decimals below 1%, where a tolerance of a few per mille is decided.
inline std::string ChangePercent(double fraction) {
  return absl::StrFormat("%+.*f%%", std::fabs(fraction) < 0.00995 ? 2 : 1, 100 * fraction);
}
// "[+0.52%, +12.3%]"
inline std::string ChangeInterval(double low, double high) {
  return absl::StrCat("[", ChangePercent(low), ", ", ChangePercent(high), "]");
}

}  // namespace warpledger::summary
