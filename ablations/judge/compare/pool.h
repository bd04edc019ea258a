// SPDX-License-Identifier: Apache-2.0
// Records of several boards together: what a claim is worth on a board of a kind.
//
// Contract
// - A comparison is a claim's candidate against its base on a problem, as the same machine code and
//   configuration of both arms, on one kind of GPU and with one cache mode. Only what is the same
//   in all of that is pooled; arms may have other names. A name that stands for several codes is
//   listed. A record says one thing of a comparison; a second pair of its arms is left out and
//   counted.
// - Verdicts that are BROKEN, INVALID or NOT_APPLICABLE, rest on one process, or lack a hash of the
//   machine code say nothing, and are counted.
// - The effect of a record, its error and whether it is of time or of cycles are those of its
//   verdict (judge/measured.h). Time and cycles are not pooled. Records of one board are averaged.
// - Three intervals (stats/random_effects.h): the effect in the conditions of one record
//   (repeatability), the mean over boards, and what a record of another board of the kind would say
//   (reproducibility). One record is enough: how far boards differ then comes from the ledger.
// - The verdict is that of the rules of stats/verdict.h on the third; a claim on a kind of GPU is a
//   family (stats/family.h). One record alone, of which nothing is
//   left out, has its own verdicts.
// - Deterministic; the order of the records does not matter but for the order of what is returned.
//
// Errors: InvalidArgument for no record, for one that is given twice, and for a record that does
// not say which board it measured.
//
//   absl::StatusOr<summary::Pooled> pooled = Pool(summaries, {});

#pragma once

#include "ablations/stats/random_effects.h"
#include "ablations/summary/compared.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

struct PoolOptions {
  double confidence = 0.95;
  double neutral_delta = 0.01;
};

absl::StatusOr<summary::Pooled> Pool(absl::Span<const summary::Summary> records,
                                     const PoolOptions& options);

// Leaves out each board in turn, fits how boards differ to all others, and counts for each of its
// records how often the interval for another board contains the record's effect. Comparisons that
// no other board holds say nothing.
absl::StatusOr<summary::Coverage> LeaveOneBoardOut(absl::Span<const summary::Summary> records,
                                                   const PoolOptions& options);

}  // namespace warpledger::ablations
