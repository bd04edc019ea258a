// SPDX-License-Identifier: Apache-2.0
// Pages in Markdown, each from a summary or from several, and text for a terminal.
//
// Contract: the only inputs are the arguments and the registry's prose
// (kernels/sdpa/registry/registry.h); schemas are in reports/RECORD.md. The same inputs give the
// same bytes, in the order of the records given. Every figure is computed; one that a record does
// not hold is an en dash. What failed correctness is shown and never ranked.
//
// Errors: InvalidArgument says what a record lacks, or names the JSON path that is missing or has
// the wrong type, and what to do; nothing is rendered by halves. Pages of several records want one
// at least, of one GPU and at most one per design.
//
//   std::string report = RenderReport(summary, {.picture_prefix = "plots/"});
//   absl::StatusOr<std::string> section = RenderReadmeSection(summary, options);
//   absl::StatusOr<std::string> readme = ReplaceGeneratedSection(old_readme, "ladder", *section);
//   absl::StatusOr<Techniques> techniques = RenderTechniques({summary}, options);
//   for (const Page& page : techniques->pages) Write(out + "/" + page.path, page.text);

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/summary/calibration.h"
#include "ablations/summary/profile.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/model/summary.h"
#include "reports/sections/sections.h"

namespace warpledger::report {

// --- A run ---------------------------------------------------------------------

// The whole report: that of a ladder, or of another design.
std::string RenderReport(const Summary& summary, const RenderOptions& options);

// InvalidArgument for a record that is no ladder, or one with a cold L2. The main picture, the
// ladder at the main shape and a sentence per verdict. The text has no markers;
// ReplaceGeneratedSection() keeps those of the README.
absl::StatusOr<std::string> RenderReadmeSection(const Summary& summary,
                                                const RenderOptions& options);

// `text` with everything between the lines `<!-- generated:NAME begin -->` and
// `<!-- generated:NAME end -->` replaced by `body`. Each marker must stand
// exactly once, begin before end. Replacing twice changes nothing.
absl::StatusOr<std::string> ReplaceGeneratedSection(std::string_view text, std::string_view name,
                                                    std::string_view body);

// --- Techniques: a page per technique, which compares kernel families, and per claim -----------

struct Page {
  std::string path;  // below the folder of the GPU's reports
  std::string text;  // Markdown, or SVG
};

struct Techniques {
  std::vector<Page> pages;  // the index of techniques, questions, names; techniques; claims
  std::string readme;       // a README's section
  std::string claim_table;  // of sections/answers/answers.h, as JSON
};

// Every technique of the registry has a page, also one that no record has judged; the page says so.
// Every claim that a record judges has one. `options.picture_prefix` goes before the links of the
// README's section alone. Refused too: a record with a cold L2.
absl::StatusOr<Techniques> RenderTechniques(std::vector<Summary> summaries,
                                            const RenderOptions& options);

// --- Standings: the fastest kernels beside the peers, over all designs --------------------------

inline constexpr char kStandingsFile[] = "standings.md";
// As plots/render.py calls the figure that joins records.
inline constexpr char kStandingsPicture[] = "throughput";

struct Standings {
  std::string page;  // Markdown
  // For a README; links begin with `options.picture_prefix`. The ratio of contenders alone comes
  // first, of this GPU or of another one; what arms in turn give is said where this GPU has none.
  std::string readme_picture;
  std::string readme_alone;
  std::string readme_rest;
  // Positions of the summaries whose series of lengths in fp16 the picture joins, in rising order;
  // none: there is no picture.
  std::vector<size_t> pictured;
};

// A ratio is time(best peer) / time(our fastest arm) of one record, above 1 ours is faster; two
// records are never set against each other. Records count whose peers were timed alone and whose
// arms all read K and V in 16 bits (decision 0020). Where several hold the same problems, the one
// counts that holds most lengths of a series, then that in which ours is fastest. Where records
// hold contenders that were timed alone (decision 0045), these give the ratios, and problems that
// they hold stand nowhere else but in the table of lengths, which has no ratios then. Where no
// record has an arm of ours beside a peer, the page says so.
absl::StatusOr<Standings> RenderStandings(std::vector<Summary> summaries,
                                          const RenderOptions& options);

// --- Records of other kinds ----------------------------------------------------------------------

inline constexpr char kProfileReportFile[] = "profile.md";

// "tensor cores 71%", "latency: wait 35%", "idle SMs: 24 CTAs, 15% busy".
// What bounds a kernel, by the rule that the page states.
std::string BoundBy(const ablations::Profile& profile);

// What bounds each kernel, where it stands under the roofs that the microbenchmarks measured, why
// its warps wait, and what each toggle's claim says of a counter against what the counter did; a
// claim without its counters is said to be unread, never held.
std::string RenderProfileReport(const summary::ProfileSummary& read, const RenderOptions& options);

using summary::CalibrationSummary;

// How often the ledger would be wrong. What `runs` say of noise that a calibration does not meet is
// set beside its figures.
std::string RenderCalibration(const CalibrationSummary& read, const RenderOptions& options,
                              const OtherRuns& runs = {});

inline constexpr char kDtypesReportFile[] = "dtypes.md";

// Of a record of `warpledger dtypes`: error against length for each way to store K and V, and which
// mistakes give NaN.
absl::StatusOr<std::string> RenderDtypes(const nlohmann::ordered_json& record);

// --- A terminal of 110 columns
// ---------------------------------------------------------------------

// The verdicts and controls of a run.
std::string VerdictTable(const summary::Summary& summary);
// The rates of a calibration.
std::string CalibrationTable(const summary::CalibrationSummary& summary);

}  // namespace warpledger::report
