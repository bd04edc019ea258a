// SPDX-License-Identifier: Apache-2.0
// The parts of a summary that factorials have. As summary.h.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/summary/parts.h"

namespace warpledger::summary {

// What one toggle of a factorial contributes on one shape. Values are ratios but for the logs.
struct Attribution {
  std::string design;
  std::string shape;
  std::string toggle;
  int64_t n_pairs = 0;
  Estimate main_effect;
  std::optional<double> shapley_share;  // of the whole gain; can be below 0 or above 1
  std::optional<double> shapley_log;
  std::optional<double> shapley_log_low;
  std::optional<double> shapley_log_high;
  std::optional<double> total_log;
  std::optional<std::string> first_base;  // the cell that `first` adds the toggle to
  Estimate first;
  std::optional<std::string> last_base;
  Estimate last;
  std::string reason;

  void Visit(auto& f) {
    FIELDS(design, shape, toggle, n_pairs);
    main_effect.VisitAs(f, "main_effect_ratio", "ci_low", "ci_high");
    FIELDS(shapley_share, shapley_log, shapley_log_low, shapley_log_high, total_log, first_base);
    first.VisitAs(f, "first_ratio", "first_low", "first_high");
    f("last_base", last_base);
    last.VisitAs(f, "last_ratio", "last_low", "last_high");
    f("reason", reason);
  }
};

struct Interaction {
  std::string design;
  std::string shape;
  std::string a;
  std::string b;
  int64_t n_quadruples = 0;
  Estimate ratio;
  std::optional<double> a_without_b;
  std::optional<double> a_with_b;
  std::optional<double> b_without_a;
  std::optional<double> b_with_a;
  std::string reason;

  void Visit(auto& f) {
    FIELDS(design, shape, a, b, n_quadruples);
    ratio.VisitAs(f, "interaction_ratio", "ci_low", "ci_high");
    FIELDS(a_without_b, a_with_b, b_without_a, b_with_a, reason);
  }
};

// A combination that the rules forbid: `toggle` needs `missing`, or, with `why`, is excluded by it.
struct InfeasibleCell {
  std::string variant;
  std::optional<std::string> toggle;
  std::optional<std::string> missing;
  std::string why;
  std::string verdict;

  void Visit(auto& f) {
    FIELDS(variant, toggle, missing);
    f("why", why, kOnlyWhereSet);
    f("verdict", verdict, kOnlyWhereSet);
  }
};

// A main effect of a fractional factorial, and what it is mixed with.
struct MainEffect {
  struct Alias {
    std::string a;
    std::string b;
    std::optional<double> coefficient;

    DESCRIBE_FIELDS(a, b, coefficient)
  };
  std::string shape;
  std::string toggle;
  int64_t n_cells = 0;
  Estimate ratio;
  std::vector<Alias> aliases;
  std::string reason;

  void Visit(auto& f) {
    FIELDS(shape, toggle, n_cells);
    ratio.Visit(f);
    FIELDS(aliases, reason);
  }
};

}  // namespace warpledger::summary
