// SPDX-License-Identifier: Apache-2.0
// A regression gate: is any cell of a record slower than in a baseline, by more
// than a declared tolerance?
//
// Contract
// - The change of a cell is time(record) / time(baseline) - 1: above 0 is slower.
//   Its interval, at the level that Holm gives it over all cells compared,
//   decides: wholly above the tolerance is a REGRESSION, wholly at or below it a
//   PASS, anything else is CANNOT_TELL. So neither a pass nor a failure is ever
//   given for want of evidence.
// - BROKEN (failed its check, or had none) and MISSING cells are never timed
//   against each other. Cells that only the record has are NEW: listed, not held
//   against anything.
// - Records of different boards, cache modes or both are refused as a whole,
//   with the reason: boards of one model differ by more than small tolerances.
// - Cells, conditions and references are compare.h's.
//
// The exit code is the gravest that applies, in the order of the constants of summary/compared.h.
//
//   absl::StatusOr<GateResult> gate = Gate(baseline, record, {.tolerance = 0.02});
//   std::cout << report::GateText(*gate);  // reports/compared/compared.h
//   return gate->exit;

#pragma once

#include <string>

#include "ablations/judge/compare/compare.h"
#include "ablations/summary/compared.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

using summary::GateOptions;
using summary::GateResult;

// InvalidArgument for a tolerance outside (0, 1].
absl::StatusOr<GateResult> Gate(const JudgedRecord& baseline, const JudgedRecord& record,
                                const GateOptions& options);

// What there is to write where the records could not even be read: exit 3, no cells,
// and `why`. `baseline` and `record` are their folders.
GateResult RefusedGate(const std::string& baseline, const std::string& record,
                       const std::string& why, const GateOptions& options);

}  // namespace warpledger::ablations
