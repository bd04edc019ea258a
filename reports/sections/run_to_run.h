// SPDX-License-Identifier: Apache-2.0
// What a calibration does not meet, from other records of the same GPU: the noise of
// pairs of different kernels, and what the same machine code takes in another run.
//
// Contract: computed from the summaries alone; says so where they hold nothing of the
// kind. No errors.
//
//   std::string text = RunToRunSection({.shape = "b1_h8_s512_d64", …}, runs);

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reports/model/summary.h"

namespace warpledger::report {

// Of the calibration that the runs are set beside; medians over its A/A trials.
struct CalibratedNoise {
  std::string shape;
  std::string config;  // of the one kernel
  int64_t arms = 0;
  int64_t trials = 0;
  double within_percent = 0;
  double between_percent = 0;
  double mde_percent = 0;
};

// Summaries of other records of the same GPU.
// Families of identical arms of several calibrations together.
struct PooledFamilies {
  std::vector<std::string> runs;  // of all but the page's own calibration
  int64_t with_false_verdict = 0;
  int64_t of = 0;
  double bound = 1;  // one-sided, at 95%
};

struct OtherRuns {
  std::vector<Summary> summaries;
  double gate_tolerance = 0;  // that `warpledger gate` has by default, as a fraction
  PooledFamilies families = {};
};

inline constexpr std::string_view kRunToRunAnchor = "what-it-does-not-cover";

// A section with a heading, in Markdown.
std::string RunToRunSection(const CalibratedNoise& calibrated, const OtherRuns& runs);

}  // namespace warpledger::report
