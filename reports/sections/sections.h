// SPDX-License-Identifier: Apache-2.0
// The report's sections, one function each. Every function returns Markdown
// that ends with a line end, computed from the summary and the registry alone.
//
//   std::string text = SummarySection(summary) + LadderSection(summary);

#pragma once

#include <string>
#include <string_view>

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
std::string ToggleSection(const Summary& summary);
std::string StatisticsSection(const Summary& summary);
std::string ProvenanceSection(const Summary& summary);

}  // namespace warpledger::report
