// SPDX-License-Identifier: Apache-2.0
// Main effects by least squares from some of the combinations of many toggles, and
// what each of them is aliased with.
//
// A cell is a bit mask of the toggles that are on. The model of a cell's gain
// ln(time(reference) / time(cell)) is a constant and one term per toggle, on = +1
// and off = -1; a toggle's effect is twice its coefficient: what switching it on
// gains. An interaction of two toggles that the model leaves out moves the estimate
// by its own coefficient times the alias coefficient, which follows from the cells
// alone: 0 in a regular fraction of resolution IV, not so where cells are missing.
//
// Errors: InvalidArgument for fewer cells than terms, for a cell twice, and for
// cells that do not tell the toggles apart.
//
//   absl::StatusOr<MainEffects> effects = MainEffects::Create(8, cells);
//   double log_gain = gains.Estimate(effects->Effect(3));

#pragma once

#include <cstdint>
#include <vector>

#include "ablations/stats/factorial/attribution.h"
#include "absl/status/statusor.h"

namespace warpledger::analysis {

class MainEffects {
 public:
  struct Alias {
    int a = 0;
    int b = 0;
    double coefficient = 0;  // of the interaction of a and b
  };

  static absl::StatusOr<MainEffects> Create(int n_toggles, const std::vector<uint32_t>& cells);

  // Weights over the cells' gains, whatever the reference: they add up to 0.
  Contrast Effect(int toggle) const;
  // The interactions of two that move the effect, by pairs a < b.
  std::vector<Alias> Aliases(int toggle) const;

 private:
  MainEffects() = default;
  int n_toggles_ = 0;
  std::vector<uint32_t> cells_;
  std::vector<std::vector<double>> coefficients_;  // by toggle, over the cells
};

}  // namespace warpledger::analysis
