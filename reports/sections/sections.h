// SPDX-License-Identifier: Apache-2.0
// The report's sections, one function each. Every function returns Markdown
// that ends with a line end, computed from the summary and the registry alone.
//
//   std::string text = SummarySection(summary) + LadderSection(summary);

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/summary/profile.h"
#include "reports/model/staleness.h"
#include "reports/model/summary.h"

namespace warpledger::report {

// A quotation that warns when the record is stale or unfinished, or its tree was dirty; else "".
std::string WarningSection(const Summary& summary, const Staleness& staleness);

// Findings in sentences, then ratio and verdict of every step at every shape.
std::string SummarySection(const Summary& summary);
// How much faster the ladder got at `shape`, and where the best peer stands.
std::string ProgressSentence(const Summary& summary, const Shape& shape);
// One list item per kind of verdict that occurs at `shape`, with its steps.
std::string VerdictSentences(const Summary& summary, const Shape& shape);

std::string HowToReadSection(const Summary& summary);
std::string PictureSection(const Summary& summary, std::string_view picture_prefix);
std::string LadderSection(const Summary& summary);
// Step, time, speed-ups and verdict only, for the README.
std::string CompactLadder(const Summary& summary, const Shape& shape);
std::string PeerSection(const Summary& summary);
std::string FloorSection(const Summary& summary);
// The page of a design that is no ladder, below its heading and warning: what
// was found, with the pictures.
std::string DesignSummary(const Summary& summary, std::string_view picture_prefix);
// Then what each toggle does in each verdict and, for a factorial, who earned the gain.
std::string DesignTables(const Summary& summary);
// "Factorial" and so on: how the page of a design is headed.
std::string DesignTitle(const Summary& summary);

inline constexpr std::string_view kSmallShapesDesign = "hopper_small";

// Small problems on Hopper: times of steps and peers, and a budget of floors beside them; "" for
// other designs.
std::string SmallShapesSection(const Summary& summary, std::string_view picture_prefix);

// TFLOP/s by sequence length beside the peers, and the ratios to the best of them; "" unless some
// three shapes differ in their length alone.
std::string ThroughputSection(const Summary& summary, std::string_view picture_prefix);

// Of a record whose arms were timed alone: contenders with clocks, watts and joules, and the two
// verdicts of each claim.
std::string AloneSection(const Summary& summary);

// Our fastest arm beside each peer, shape by shape; "" where no peer was timed, and where one of
// the two sections above has them.
std::string BesidePeersSection(const Summary& summary);
// Our fastest arm beside a plain read of K and V; "" where none was timed.
std::string PlainReadSection(const Summary& summary);

// What toggles do to the errors, where that is more than rounding in another order; "" where there
// is no verdict, and for summaries of older programs.
std::string ErrorSection(const Summary& summary);

// What each toggle is worth in its microbenchmark beside the kernel; "" where the
// summary quotes no microbenchmarks.
std::string IsolatedSection(const Summary& summary);

// A published ablation beside the arms of the design that leaves the same things out; "" in others.
std::string PublishedSection(const Summary& summary);

// Of a profile record: the model of bank conflicts beside the profiler's counter. Holds the
// variants whose reads of shared memory the model can count (kernels/sdpa/mma/conflicts.h) and
// whose profile has the counter; "" where there is none.
std::string SharedReadsSection(const summary::ProfileSummary& summary);

std::string ControlSection(const Summary& summary);
// How many boards or processes would decide each INCONCLUSIVE verdict; "" where none is.
std::string UndecidedSection(const Summary& summary);
std::string ToggleSection(const Summary& summary);
std::string StatisticsSection(const Summary& summary);
std::string ProvenanceSection(const Summary& summary);

// What each technique is worth alone, by its microbenchmark.
//
// Contract: pure functions of their arguments. Units in which less is
// better ("cycles", "us", "ns") are told from rates, so that an effect above 1 is
// always the faster one. No errors.
//
//   Isolated isolated = IsolatedOf(summary, claim.micro);
//   if (isolated.effect) text += FormatRatio(isolated.effect);

// What the microbenchmarks that a summary quotes say of one toggle.
struct Isolated {
  const MicroValue* off = nullptr;  // null where the summary doesn't quote the case
  const MicroValue* on = nullptr;
  std::optional<double> effect;  // above 1: the technique is faster
};

Isolated IsolatedOf(const Summary& summary, const ablations::ClaimMicro& micro);

// The cases and their values in words: "`a/b`: 16.0 B/clk/SM, against `a/c`: 128 B/clk/SM".
std::string DescribeCases(const Isolated& isolated, const ablations::ClaimMicro& micro);

// What a calibration does not meet, from other records of the same GPU: the noise of
// pairs of different kernels, and what the same machine code takes in another run.
//
// Contract: computed from the summaries alone; says so where they hold nothing of the
// kind. No errors.
//
//   std::string text = RunToRunSection({.shape = "b1_h8_s512_d64", …}, runs);

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
