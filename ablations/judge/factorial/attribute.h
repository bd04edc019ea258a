// SPDX-License-Identifier: Apache-2.0
// The parts of summary.json that only a factorial has: attribution[],
// interactions[] and infeasible[] (reports/RECORD.md).
//
// Contract: a pure function of its arguments. The lattice of cells is read from
// the arms alone: the `base` arm is the cell with every toggle off, and a `step`
// is its base's cell with its toggle on. A figure that can't be had is null and
// its row says why.
//
// Errors: InvalidArgument for a record whose arms make no factorial.
//
//   absl::StatusOr<Factorial> factorial = FindFactorial(subject, run);
//   AddAttribution(*factorial, shape, cells, options, &summary);

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablations/judge/factorial/attribute.h"
#include "ablations/plan/subject.h"
#include "ablations/record/record.h"
#include "ablations/stats/factorial/attribution.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

struct Factorial {
  std::vector<std::string> toggles;  // bit i of a cell is toggles[i]
  std::vector<const Arm*> arms;      // one per cell, in the lattice's order
  analysis::Lattice lattice;
};

// The factorial that a run's arms span; `run` must outlive it.
absl::StatusOr<Factorial> FindFactorial(const Subject& subject, const RunInfo& run);

// What is known of one cell on one shape.
struct CellData {
  absl::Span<const analysis::Timing> timings;
  std::string why_unusable;  // empty: its gain counts
};

struct AttributionOptions {
  double confidence = 0.95;
  analysis::BootstrapOptions bootstrap;
};

// ln(time(reference cell) / time(cell)) of every usable cell, and 0 of others, for each block that
// timed all usable ones; by process. The reference is usable.
std::vector<std::vector<std::vector<double>>> GainsByProcess(const std::vector<CellData>& cells,
                                                             size_t reference);

// Appends the shape's rows to `attribution` and `interactions`.
// `cells` in the order of factorial.arms.
void AddAttribution(Factorial factorial, const std::string& design, const std::string& shape,
                    const std::vector<CellData>& cells, const AttributionOptions& options,
                    summary::Summary* out);

// A combination that a rule forbids, as a design that is no factorial lists it.
summary::InfeasibleCell RuledOut(const InfeasibleCell& cell);

// The combinations that the design spans and the record lacks, each with the rule that
// forbids it.
std::vector<summary::InfeasibleCell> InfeasibleCells(const Subject& subject,
                                                     const Factorial& factorial,
                                                     const std::string& design);

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
