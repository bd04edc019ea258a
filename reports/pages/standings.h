// SPDX-License-Identifier: Apache-2.0
// Where the fastest kernels stand beside the peers, over all designs.
//
// Contract: the only inputs are summaries of one GPU, at most one per design (records.h). A ratio
// is time(best peer) / time(our fastest arm) of one record, above 1 ours is faster; two records are
// never set against each other. Records count whose peers were timed alone and whose arms all read
// K and V in 16 bits (decision 0020). Where several hold the same problems, the one counts that
// holds most lengths of a series, then that in which ours is fastest. Where records hold contenders
// that were timed alone (decision 0045), these give the ratios, and problems that they hold stand
// nowhere else but in the table of lengths, which has no ratios then. The same inputs give the same
// bytes, in the order of the records given. Every figure is computed.
//
// Where no record has an arm of ours beside a peer, the page says so.
//
// Errors: those of ReadRecords().
//
//   absl::StatusOr<Standings> standings = RenderStandings(summaries, options);
//   Write(out + "/" + kStandingsFile, standings->page);

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/model/options.h"
#include "reports/model/summary.h"

namespace warpledger::report {

inline constexpr char kStandingsFile[] = "standings.md";
// As plots/render.py calls the figure that joins records.
inline constexpr char kStandingsPicture[] = "throughput";

struct Standings {
  std::string page;    // Markdown
  std::string readme;  // its tables, for a README; links begin with `options.picture_prefix`
  // Positions of the summaries whose series of lengths in fp16 the picture joins, in rising order;
  // none: there is no picture.
  std::vector<size_t> pictured;
};

absl::StatusOr<Standings> RenderStandings(std::vector<Summary> summaries,
                                          const RenderOptions& options);

}  // namespace warpledger::report
