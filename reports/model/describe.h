// SPDX-License-Identifier: Apache-2.0
// The phrases and table cells that the report's sections share: how a step, a
// shape, a prediction and a verdict are named in text.
//
// Contract: pure functions of the summary and its subject's claims. Pointers are null
// where the record has no such entry. No errors.
//
//   Code(StepId(cell))                                "`wmma_pv`"
//   StepSpeedup(summary, cell, verdict, true)         "2.41× [2.39, 2.43]"

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/model/summary.h"

namespace warpledger::report {

// "1 process", "2 processes".
std::string Processes(int64_t n);

std::string Code(std::string_view text);      // `text`
std::string PeerName(std::string_view name);  // without its prefix
// The toggle that a step adds, or the base's own name.
std::string_view StepId(const Cell& cell);
std::string StepLabel(const Cell& cell);
std::string DescribeShape(const Shape& shape);

// What names of pages and pictures end with, so that a record with a cold L2 has its own beside
// those of the warm one: "_cold", else "".
std::string_view CacheSuffix(std::string_view cache);
// With a dash for what is no small letter, digit or underscore, as plots/render.py does: names of a
// record come into files' names, and must not lead out of the folder.
std::string PlainName(std::string_view name);
// What the report's file is called: the design's name, plainly, "_cold" where the record's `cache`
// is that, and ".md".
std::string ReportFileName(std::string_view design, std::string_view cache);
// Of a run; "_alone" too where each arm was timed by itself.
std::string ReportFileName(const Summary& summary);
// "plots/effects.svg" for "effects" and the prefix "plots/"; as plots/render.py names the file.
std::string PicturePath(const Summary& summary, std::string_view prefix, std::string_view name);

// Shapes in the record's order, except that the main one comes first.
std::vector<const Shape*> ShapesMainFirst(const Summary& summary);
// Toggles in ladder order, each once.
std::vector<std::string> StepToggles(const Summary& summary);
const Verdict* FindToggleVerdict(const Summary& summary, std::string_view toggle,
                                 std::string_view shape);

// "1.230× [1.210, 1.250]"; kNone where there is no ratio.
std::string RatioWithInterval(const Estimate& ratio);
// Whether the ratio says anything about the toggle.
bool HasMeaning(const Verdict& verdict);
// `A` (1.23×), without the ratio where that means nothing.
std::string NamedRatio(const Verdict& verdict);
std::string_view VerdictMeaning(std::string_view verdict);

struct Range {
  double low = 0;
  double high = 0;
};
// The range that the record was judged against, else today's.
Range PredictedRange(const ablations::ClaimPrediction& predicted, const Verdict* verdict);
// On which side of its range a measured ratio lies.
enum class Miss { kNone, kLow, kHigh, kUnknown };
Miss MissOf(const Verdict& verdict, const Range& range);
// What the measured effect says about the prediction, with the factor by which
// it missed: the next change of the kernel should wait until that is explained.
std::string PredictionOutcome(const ablations::ClaimPrediction& predicted, const Verdict* verdict);

std::string CorrectCell(const Cell& cell);
std::string VerdictCell(const Cell& cell, const Verdict* verdict);
// What a verdict's row says beside its figures: its reason, and what the samples could have shown
// where they decided nothing. "" where there is nothing to say.
std::string Remark(const Verdict& verdict);
// Speed-ups of a cell that is not ranked are left out: they would read as a rank.
std::string StepSpeedup(const Summary& summary, const Cell& cell, const Verdict* verdict,
                        bool with_interval);
std::string GainOverFirst(const Summary& summary, const Cell& cell);

// The toggles that a verdict's base lacks besides the one that it is on, because they need it:
// "`warp_shuffle` and `vector_loads`"; "" where there is none.
std::string Dependents(const Summary& summary, const Verdict& verdict);

// How many verdicts on the controls were false.
std::string ControlSentence(const Summary& summary);

}  // namespace warpledger::report
