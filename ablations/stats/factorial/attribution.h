// SPDX-License-Identifier: Apache-2.0
// Who earned the speed-up: main effects, interactions and Shapley shares from a
// factorial in which some combinations may be impossible.
//
// A cell is a combination of n toggles, written as a bit mask; cell 0 has none
// of them on. Its gain is g(S) = ln(time(cell 0) / time(S)), so g(0) = 0. All
// figures are linear in the gains, which is what a Contrast holds:
//
//   main effect of t      the mean of g(S + t) - g(S) over every S without t for
//                         which both cells exist (equal weights, after Yates,
//                         "The design and analysis of factorial experiments", 1937)
//   effect of a given b   the same mean over the quadruples {S, S+a, S+b, S+a+b}
//                         that exist in full, with b off or with b on
//   interaction of a, b   the second of these minus the first; above 0 they help
//                         each other, below 0 they share one gain
//   Shapley value of t    the mean over all orders of switching the toggles on of
//                         what t adds when its turn comes (Shapley, "A value for
//                         n-person games", 1953)
//
// Where requirements forbid a coalition S, its value is that of the largest cell
// that is a subset of S: a toggle that lacks what it needs is off. There is one
// largest cell exactly when the cells are closed under union; "t needs u" rules
// always give that. The values then add up to g(all toggles) over any such set
// of cells, and a toggle and the one it needs split what only both can give
// (Gilles, Owen and van den Brink, "Games with permission structures: the
// conjunctive approach", 1992).
//
// Errors: InvalidArgument when there are too many toggles, cell 0 is missing, a
// cell is named twice or the cells are not closed under union.
//
//   absl::StatusOr<Lattice> lattice = Lattice::Create(5, cells);
//   CellGains gains(by_process, {.resamples = 20000, .seed = 1});
//   double share = gains.Estimate(lattice->Shapley(2)) / gains.Estimate(lattice->Total());

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ablations/stats/cluster_median.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::analysis {

inline constexpr int kMaxLatticeToggles = 7;

// A linear function of the cells' gains.
struct Contrast {
  std::vector<double> weights;  // one per cell, in the lattice's order
  int n_terms = 0;              // differences of cells that it averages; 0: there is none
};

class Lattice {
 public:
  // `cells`: masks of the combinations that exist, in any order.
  static absl::StatusOr<Lattice> Create(int n_toggles, std::vector<uint32_t> cells);

  // Cells whose gains can't be used (wrong results, throttled): one flag per
  // cell. Contrasts but Shapley's and the total then leave out what touches them.
  void SetUsable(std::vector<bool> usable) { usable_ = std::move(usable); }
  bool AllUsable() const;

  int n_toggles() const { return n_toggles_; }
  const std::vector<uint32_t>& cells() const { return cells_; }
  // The index of the largest cell that is a subset of `coalition`.
  size_t LargestCell(uint32_t coalition) const { return largest_[coalition]; }

  Contrast MainEffect(int toggle) const;
  // The effect of `a` where `b` is on, or off, over the full quadruples.
  Contrast EffectGiven(int a, int b, bool b_on) const;
  Contrast Interaction(int a, int b) const;
  // Zero terms unless every cell is usable: a hole has no value of its own.
  Contrast Shapley(int toggle) const;
  Contrast Total() const;

  // The two cells (without, with `toggle`) where as few of the other toggles are
  // on as its requirements allow, and where as many are; indices into cells().
  using Edge = std::pair<size_t, size_t>;
  std::optional<Edge> FirstEdge(int toggle) const;
  std::optional<Edge> LastEdge(int toggle) const;
  // g(second) - g(first); zero terms unless both are usable.
  Contrast Difference(const Edge& edge) const;

 private:
  Lattice() = default;
  std::optional<size_t> Find(uint32_t mask) const;
  void Add(size_t cell, double weight, Contrast* contrast) const;

  int n_toggles_ = 0;
  std::vector<uint32_t> cells_;
  std::vector<bool> usable_;
  std::vector<size_t> largest_;  // by coalition
};

// The gains of all cells from blocks that timed every cell once.
//
// A cell's estimate is the mean over processes of its gains' medians, as a verdict's. An interval
// of a contrast is the envelope of two, as in cluster_median.h: percentiles of a bootstrap that
// draws whole processes, the same for every cell, and Student's t on the contrasts of the
// processes' own medians.
class CellGains {
 public:
  // gains[process][block][cell]; at least one block in all, all of one width.
  CellGains(const std::vector<std::vector<std::vector<double>>>& gains,
            const BootstrapOptions& options);

  double Estimate(const Contrast& contrast) const;
  // With one process the bootstrap's alone, which knows nothing of others.
  Interval Envelope(const Contrast& contrast, double confidence) const;
  int n_processes() const { return static_cast<int>(process_medians_.size()); }

 private:
  std::vector<double> estimates_;                     // by cell: the mean of these
  std::vector<std::vector<double>> process_medians_;  // by process, by cell
  std::vector<double> resamples_;                     // (resamples, cells)
};

}  // namespace warpledger::analysis
