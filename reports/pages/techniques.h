// SPDX-License-Identifier: Apache-2.0
// A page per technique, which compares kernel families, and a page with a picture per claim: what
// the registry claims and foresaw, and what every newest record of a GPU says of it.
//
// Contract: the only inputs are summaries (schema in reports/RECORD.md) of one GPU, at most one per
// design, and the registry. Every technique of the registry has a page, also one that no record has
// judged; the page says so. Every claim that a record judges has one. The same inputs give the same
// bytes, in the order of the records given. Every figure is computed.
//
// Errors: InvalidArgument when no record is given, two are of one design, the records are of
// several GPUs, one's L2 was cold, or one can't be read; nothing is rendered by halves.
//
//   absl::StatusOr<Techniques> techniques = RenderTechniques({summary}, options);
//   for (const Page& page : techniques->pages) Write(out + "/" + page.path, page.text);

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/model/summary.h"

namespace warpledger::report {

struct Page {
  std::string path;  // below the folder of the GPU's reports
  std::string text;  // Markdown, or SVG
};

struct Techniques {
  std::vector<Page> pages;  // the index of techniques, questions, names; techniques; claims
  std::string readme;       // a README's section
  std::string claim_table;  // of sections/answers/answers.h, as JSON
};

// `options.picture_prefix` goes before the links of the README's section alone.
absl::StatusOr<Techniques> RenderTechniques(std::vector<Summary> summaries,
                                            const RenderOptions& options);

}  // namespace warpledger::report
