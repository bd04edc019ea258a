// SPDX-License-Identifier: Apache-2.0
// A page per technique: what the registry claims and foresaw of a toggle, and what every newest
// record of a GPU says of it.
//
// Contract: the only inputs are summaries (schema in reports/RECORD.md) of one GPU, at most one per
// design, and the registry. Every toggle of the registry that is no control has a page, also one
// that no record has judged; the page says so. The same inputs give the same bytes, in the order of
// the records given. Every figure is computed.
//
// Errors: InvalidArgument when no record is given, two are of one design, the records are of
// several GPUs, one's L2 was cold, or one can't be read; nothing is rendered by halves.
//
//   absl::StatusOr<std::vector<Page>> pages = RenderTechniques({summary}, options);
//   for (const Page& page : *pages) Write(out + "/" + page.path, page.text);

#ifndef WARPLEDGER_REPORTS_PAGES_TECHNIQUES_H_
#define WARPLEDGER_REPORTS_PAGES_TECHNIQUES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/pages/technique_page.h"

namespace warpledger::report {

// The index first, then one page per toggle in registry order. `options.picture_prefix` is not
// used: the pages have no pictures.
absl::StatusOr<std::vector<Page>> RenderTechniques(std::vector<Summary> summaries,
                                                   const RenderOptions& options);

}  // namespace warpledger::report

#endif  // WARPLEDGER_REPORTS_PAGES_TECHNIQUES_H_
