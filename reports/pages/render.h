// SPDX-License-Identifier: Apache-2.0
// Renders summary.json as Markdown: the full report of a record, and the short
// section that the README shows of a ladder.
//
// Contract: the only inputs are the summary (schema in reports/RECORD.md), the
// registry's prose (kernels/sdpa/registry/registry.h) and the options. The same inputs give
// the same bytes. Every figure in the text is computed; a figure that the record
// does not hold is shown as an en dash. Cells that failed correctness are shown
// and never ranked.
//
// Errors: InvalidArgument names the JSON path that is missing or has the wrong
// type, and what to do; nothing is rendered by halves.
//
//   absl::StatusOr<std::string> report = RenderReport(summary, {.picture_prefix = "plots/"});
//   absl::StatusOr<std::string> section = RenderReadmeSection(summary, options);
//   absl::StatusOr<std::string> readme = ReplaceGeneratedSection(old_readme, "ladder", *section);

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/model/summary.h"

namespace warpledger::report {

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

}  // namespace warpledger::report
