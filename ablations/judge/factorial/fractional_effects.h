// SPDX-License-Identifier: Apache-2.0
// The part of summary.json that only a fractional factorial has: effects[] and
// infeasible cells are in its design (reports/RECORD.md).
//
// Contract: a pure function of its arguments. The cells are read from the arms'
// names, as fractional.h makes them. A cell that can't be used (wrong, throttled)
// is left out of the least squares, which changes what is aliased: the rows say
// with what. A figure that can't be had is null and its row says why.
//
//   Fraction fraction = FindFraction(subject, run.arms);
//   for (const std::string& line : AliasWarnings(fraction)) …

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablations/judge/factorial/attribute.h"
#include "ablations/plan/subject.h"
#include "ablations/record/record.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

struct Fraction {
  std::vector<std::string> toggles;  // bit i of a cell is toggles[i]; the order of claims
  std::vector<std::string> arms;     // one per cell
  std::vector<uint32_t> cells;
};

// Of the arms whose role is `cell`; the toggles are those that any of them names.
Fraction FindFraction(const Subject& subject, const std::vector<Arm>& arms);

// One line per toggle whose main effect is aliased with interactions of two among
// the cells that exist; empty when all are clear. InvalidArgument where the cells
// give no effects, as when the rules forbid too many.
absl::StatusOr<std::vector<std::string>> AliasWarnings(const Fraction& fraction);

// Appends the shape's rows to `out`. `cells` in fraction.arms' order.
void AddMainEffects(const Fraction& fraction, const std::string& shape,
                    const std::vector<CellData>& cells, const AttributionOptions& options,
                    std::vector<summary::MainEffect>* out);

}  // namespace warpledger::ablations
