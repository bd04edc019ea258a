// SPDX-License-Identifier: Apache-2.0
// What a record says of one comparison: on its board, and on boards of its kind.
//
// Contract
// - Base and candidate are compared in time, but in SM cycles where the power limit acts and each
//   sample has a clock of its own: the arms of a block share the power, so that their clocks are
//   not their own (decisions/0006).
// - Arms that were timed alone are compared in what each took at its own power: time, and joules
//   (decisions/0045). The ledger has too few boards of such records: their verdicts are of this
//   board.
// - The effect is the mean over processes of the median log-ratio of a process's pairs. Its error
//   is that of this mean, moderated over the comparisons of the record in the same regime, which
//   are not independent where they share a side (stats/effects/effect.h).
// - On this board: Student's t with that error, and with what the place of a graph in its process
//   adds. It is the effect in this run's conditions; another run can differ by more
//   (decisions/0002).
// - On boards of the kind: what a record of another board would say (reproducibility). How boards
//   differ comes from the ledger, by regime (stats/random_effects.h, decisions/0036). The ledger
//   has many boards of the first subject alone. Verdicts of others are of this board.
//
//   MeasuredEffect measured = MeasuredOf(pairs, clocks_of_samples);
//   SetSides(base, candidate, shape, &measured);
//   ShareVariances({&measured, …});
//   const analysis::Effect effect = measured.OnTheKind();

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablations/stats/effects/effect.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/stats/random_effects.h"
#include "ablations/summary/parts.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

// What the power limit does to a comparison, and how its effect scatters there.
struct Regime {
  const char* name;
  const char* estimand;
  analysis::SpreadPrior spread;  // between boards
  double placement;              // deviation of identical arms beyond their processes' errors
};
// `warpledger pool --leave_one_out` of the records of 2026-11, and their A/A controls:
// decisions/0036 and 0002.
inline constexpr Regime kNotCapped = {
    summary::kNotCapped,
    summary::kTime,
    {.floor = 0.00055, .scale = 1.08, .df = 1.49, .slope = 0.0022},
    0.0002};
inline constexpr Regime kCapped = {summary::kCapped,
                                   summary::kCycles,
                                   {.floor = 0.00032, .scale = 0.84, .df = 3.61, .slope = 0.0062},
                                   0};
// Of records before 2026-11-21T17:00Z, whose samples have no clock of their own.
inline constexpr Regime kCappedTime = {
    summary::kCappedTime, summary::kTime, {.floor = 0.00053, .scale = 0.207, .df = 2.17}, 0};
// Of arms that were timed alone. How boards differ there, the ledger does not know yet.
inline constexpr Regime kAlone = {"alone", summary::kOwnPower, {}, 0};
inline constexpr Regime kAloneJoules = {"alone_joules", summary::kJoules, {}, 0};
inline constexpr const Regime* kRegimes[] = {&kNotCapped, &kCapped, &kCappedTime};

// Where most samples of both arms ran under the power limit.
const Regime& RegimeOf(bool capped, bool in_cycles);
summary::BoardSpread SpreadOf(const char* regime, const analysis::SpreadPrior& spread);

// On the board that was measured.
analysis::Effect OnBoard(const Regime& regime, const analysis::Effect& measured);

struct MeasuredEffect {
  const Regime* regime = nullptr;
  // What was timed; empty: nothing that another comparison of the record has.
  std::string base;
  std::string candidate;
  std::vector<std::vector<double>> log_ratios;  // by process
  double log_ratio = 0;
  int processes = 0;
  // Between the processes' medians, moderated by what the record shares, and before that.
  analysis::VarianceEstimate variance;
  analysis::VarianceEstimate own_variance;
  analysis::VariancePrior shared;
  // The ledger knows how boards differ. Where it does not, OnTheKind() is OnThisBoard().
  bool boards_known = true;

  // With the error of its processes alone, which is infinite for one process.
  analysis::Effect Within() const;
  analysis::Effect OnThisBoard() const { return OnBoard(*regime, Within()); }
  analysis::Effect OnTheKind() const;
  // What more processes that scatter alike would say of the same ratio. Without log_ratios.
  MeasuredEffect WithProcesses(int count) const;
};

// At least one pair. `clocks_of_samples`: each sample's clock is its own.
MeasuredEffect MeasuredOf(absl::Span<const analysis::Pair> pairs, bool clocks_of_samples);
// Of arms that were timed alone; `pairs` hold what the regime compares in place of a time.
MeasuredEffect MeasuredAlone(absl::Span<const analysis::Pair> pairs, const Regime& regime);

// Names what the comparison is of: two arms or peers on a shape.
void SetSides(const std::string& base, const std::string& candidate, const std::string& shape,
              MeasuredEffect* measured);

// Moderates the variances of those of two processes and more, regime by regime.
void ShareVariances(absl::Span<MeasuredEffect* const> of_record);

// What would decide a comparison if it measured the same again: so many boards with as many
// processes each, or so many processes on one board. nullopt: not even kMostBoards, kMostProcesses,
// or how boards differ is not known.
struct Enough {
  static constexpr int kMostBoards = 20;
  static constexpr int kMostProcesses = 64;

  std::optional<int> boards;
  std::optional<int> processes;
};
Enough EnoughToDecide(const MeasuredEffect& measured, double alpha, double neutral_delta);

// How many boards would decide if further ones said by turns what these say; nullopt: not even
// Enough::kMostBoards. Boards that agree make the factor f of their comparison smaller
// (stats/random_effects.h).
std::optional<int> BoardsToDecide(std::vector<analysis::BoardEffect> boards,
                                  const analysis::SpreadPrior& spread, double alpha,
                                  double neutral_delta);

}  // namespace warpledger::ablations
