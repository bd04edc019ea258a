// SPDX-License-Identifier: Apache-2.0
// What a design is, and the designs that every family shares: ladder, one_on, leave_one_out and
// factorial. designs.h lists all.

#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/plan/infeasible_cell.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::ablations {

// One thing that is timed. reports/RECORD.md says what each role is.
struct DesignArm {
  std::string name;
  sdpa::Config config;
  std::string role = "base";  // or step, without, aa, null, cell
  std::string toggle = "";    // what a step or a null control adds, what a `without` leaves out
  std::string base = "";      // the arm that it is judged against
  // A delay of so many SM clock cycles at the end of each replay; 0: none.
  long long spin_cycles = 0;
  bool spin_alone = false;  // replays of nothing but the delay
};

// `reason` is WhyInvalid() of the cell's configuration.
inline InfeasibleCell Infeasible(std::string name, const sdpa::InvalidReason& reason) {
  InfeasibleCell cell = {.name = std::move(name),
                         .toggle = std::string(reason.toggle),
                         .missing = std::string(reason.missing),
                         .why = std::string(reason.why)};
  // Families and some rows exclude each other without a reason of their own.
  if (reason.kind == sdpa::InvalidReason::Kind::kExcluded && cell.why.empty()) {
    cell.why = "one kernel can't have both";
  }
  return cell;
}

// How the arms of a design span their techniques.
enum class Span {
  kOther,
  kCumulative,   // each toggle on top of all before it: the order that predictions speak of
  kFactorial,    // every combination
  kFractional,   // a part of them
  kWholeKernels  // which of some kernels is fastest: no technique is judged
};

struct Design {
  std::string name;
  std::string label;
  std::vector<DesignArm> arms = {};
  std::vector<InfeasibleCell> infeasible = {};
  // Its arms are compiled for problems of these; on others they don't apply.
  std::vector<int> head_dims = {64};
  std::vector<sdpa::Dtype> dtypes = {sdpa::Dtype::kFp16};
  bool projected = false;  // for problems that begin with x, and for no others
  // The arms on which the registry's predictions of techniques beyond a ladder were made.
  std::vector<std::string> predicted_on = {};
  bool reads_kv = false;  // memory bounds it: a plain read of K and V is timed beside its arms
  Span span = Span::kOther;
};

// The compiled instances behind an arm of the design.
inline std::vector<sdpa::Config> Specialisations(const Design& design, const DesignArm& arm) {
  std::vector<sdpa::Config> configs;
  for (const int head_dim : design.head_dims) {
    for (const sdpa::Dtype dtype : design.dtypes) {
      for (const bool causal : {false, true}) {
        const sdpa::Config config =
            sdpa::Specialise(arm.config, head_dim, causal, dtype, design.projected);
        if (configs.empty() || !(configs.back() == config)) configs.push_back(config);
      }
    }
  }
  return configs;
}

// The first level of a toggle that is not off.
constexpr int FirstOnLevel(const sdpa::ToggleRow& row) { return row.levels.values[1]; }

constexpr const sdpa::ToggleRow& RowOf(sdpa::ToggleField toggle) {
  return *std::find_if(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                       [&](const sdpa::ToggleRow& row) { return row.field == toggle; });
}

constexpr std::span<const int> OnLevels(const sdpa::ToggleRow& row) {
  return {&row.levels.values[1], row.levels.count - 1};
}

using ToggleRows = std::vector<const sdpa::ToggleRow*>;

// The techniques that one kernel can have all at once, in registry order: one
// that is illegal beside those before it belongs to another kernel.
inline ToggleRows LadderToggles() {
  ToggleRows rows;
  sdpa::Config config;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !row.in_ladder) continue;
    sdpa::Config more = config;
    more.*row.field = FirstOnLevel(row);
    if (sdpa::WhyInvalid(more)) continue;
    config = more;
    rows.push_back(&row);
  }
  return rows;
}

// The techniques of a family in registry order: the steps of its ladder.
inline ToggleRows LadderToggles(sdpa::Family family) {
  ToggleRows rows;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control && row.in_ladder && Includes(row.families, family)) rows.push_back(&row);
  }
  return rows;
}

// Each of `rows` at its first level: the end of their ladder.
inline sdpa::Config AllOn(const ToggleRows& rows) {
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : rows) config.*row->field = FirstOnLevel(*row);
  return config;
}
inline sdpa::Config EverythingOn() { return AllOn(LadderToggles()); }

// The configuration of an arm that the design has.
inline sdpa::Config ConfigOf(const Design& design, const std::string& arm) {
  return std::find_if(design.arms.begin(), design.arms.end(),
                      [&](const DesignArm& each) { return each.name == arm; })
      ->config;
}

struct Level {
  sdpa::ToggleField field;
  int level;
};

// Adds the arm `base` with a toggle at a level, as a step from it.
inline void AddStep(const std::string& name, const Level& step, const std::string& base,
                    Design* design) {
  sdpa::Config config = ConfigOf(*design, base);
  config.*step.field = step.level;
  design->arms.push_back({name, config, "step", std::string(sdpa::ToggleId(step.field)), base});
}

// Adds each of `rows` that `config` lacks, on top of all before it and called after `prefix`; the
// first is a step from the arm `base`, whatever that has. Returns the last one's name.
inline std::string AddLadder(const std::string& prefix, const ToggleRows& rows, sdpa::Config config,
                             std::string base, Design* design) {
  for (const sdpa::ToggleRow* row : rows) {
    if (config.*row->field != 0) continue;
    config.*row->field = FirstOnLevel(*row);
    const std::string id(row->id);
    design->arms.push_back({prefix + ":" + id, config, "step", id, base});
    base = design->arms.back().name;
  }
  return base;
}

// The two controls on top of the arm `base`, named `<prefix>:aa` and so on: the
// same instance under a second name (A/A), and the null toggle, whose machine
// code is the same in a second instance. `base` is a copy: it may be an arm's own name.
inline void PlantControls(const std::string& prefix, std::string base, Design* design) {
  const sdpa::Config config = ConfigOf(*design, base);
  design->arms.push_back({prefix + ":aa", config, "aa", "", base});
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control) continue;
    sdpa::Config planted = config;
    planted.*row.field = FirstOnLevel(row);
    const std::string id(row.id);
    design->arms.push_back({prefix + ":" + id, planted, "null", id, base});
  }
}

// Every technique in registry order, each on top of all before it; then the two
// controls on top of the last step.
inline Design LadderDesign() {
  const std::string base(sdpa::kBaseline.id);
  Design design = {.name = "ladder",
                   .label = "cumulative ladder: each toggle on top of all before it",
                   .arms = {{base, {}}},
                   .span = Span::kCumulative};
  PlantControls("control", AddLadder("ladder", LadderToggles(), {}, base, &design), &design);
  return design;
}

// --- Requirements ---------------------------------------------------------------

// Turns on what `toggle` needs, and what that needs, but not `toggle` itself.
constexpr void AddNeeds(sdpa::ToggleField toggle, sdpa::Config* config) {
  for (const sdpa::ToggleField need : RowOf(toggle).needs) {
    if (need == nullptr) continue;
    AddNeeds(need, config);
    if (config->*need == 0) config->*need = FirstOnLevel(RowOf(need));
  }
}

// Turns off every toggle that lacks what it needs, until none does.
constexpr void DropDependents(sdpa::Config* config) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (config->*row.field == 0) continue;
      for (const sdpa::ToggleField need : row.needs) {
        if (need == nullptr || config->*need != 0) continue;
        config->*row.field = 0;
        changed = true;
        break;
      }
    }
  }
}

// --- The designs beyond the ladder ----------------------------------------------

// Each toggle on the smallest configuration that allows it, against the same
// configuration without it. Where that is an arm already, it is timed once.
inline Design OneOnDesign() {
  Design design = {.name = "one_on",
                   .label = "each toggle alone, with the toggles that it needs",
                   .arms = {{std::string(sdpa::kBaseline.id), {}}}};
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    sdpa::Config config;
    AddNeeds(row->field, &config);
    const auto same = std::find_if(design.arms.begin(), design.arms.end(),
                                   [&](const DesignArm& arm) { return arm.config == config; });
    const std::string id(row->id);
    std::string base = "one_on:needs_of_" + id;
    if (same != design.arms.end()) {
      base = same->name;
    } else {
      design.arms.push_back({base, config});
    }
    AddStep("one_on:" + id, {row->field, FirstOnLevel(*row)}, base, &design);
  }
  PlantControls("one_on", design.arms.back().name, &design);
  return design;
}

// The configuration `full`, and for each of `rows` what is left of it without the
// toggle and without those that need it. The full arm is timed once and judged
// against each of the others, so a `without` arm is the base of its verdict.
inline Design LeaveOneOutOf(const std::string& name, std::string label, const ToggleRows& rows,
                            const sdpa::Config& full_config) {
  const std::string full = name + ":full";
  Design design = {.name = name, .label = std::move(label), .arms = {{full, full_config}}};
  const std::string prefix = name == "leave_one_out" ? "" : name + ":";
  for (const sdpa::ToggleRow* row : rows) {
    sdpa::Config alone = full_config;
    alone.*row->field = 0;
    sdpa::Config config = alone;
    DropDependents(&config);
    const std::string id(row->id);
    design.arms.push_back({prefix + "without:" + id + (config == alone ? "" : "(+dependents)"),
                           config, "without", id, full});
  }
  PlantControls(name, full, &design);
  return design;
}

inline Design LeaveOneOutDesign() {
  return LeaveOneOutOf("leave_one_out",
                       "everything on, against the same without one toggle and those that need it",
                       LadderToggles(), EverythingOn());
}

// The most toggles of one factorial: 128 combinations.
inline constexpr std::size_t kMaxFactors = 7;

// Every legal combination of `factors` (in registry order, at most kMaxFactors, no
// control) on top of `background` and of all that the factors need beyond
// themselves. A combination is judged against the same one without its last
// toggle in registry order that can be taken away, so that each is one step
// from another; the rest is for analysis/attribution.h. Illegal combinations
// are declared in `infeasible`.
inline Design FactorialDesign(std::string name, const std::vector<sdpa::ToggleField>& factors,
                              const sdpa::Config& background) {
  sdpa::Config fixed = background;
  for (const sdpa::ToggleField factor : factors) AddNeeds(factor, &fixed);
  std::string ids;
  for (const sdpa::ToggleField factor : factors) {
    fixed.*factor = 0;
    ids += ids.empty() ? "" : ", ";
    ids += sdpa::ToggleId(factor);
  }
  Design design = {
      .name = std::move(name),
      .label = "every legal combination of " + ids + " on top of " + sdpa::ConfigName(fixed),
      .span = Span::kFactorial};
  const unsigned combinations = 1u << factors.size();
  const auto config_of = [&](unsigned mask) {
    sdpa::Config config = fixed;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (mask >> i & 1u) config.*factors[i] = FirstOnLevel(RowOf(factors[i]));
    }
    return config;
  };
  const auto name_of = [&](unsigned mask) {
    std::string name = "cell:";
    if (mask == 0) name += "none";
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!(mask >> i & 1u)) continue;
      name += name.back() == ':' ? "" : "+";
      name += sdpa::ToggleId(factors[i]);
    }
    return name;
  };
  for (unsigned mask = 0; mask < combinations; ++mask) {
    const sdpa::Config config = config_of(mask);
    if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(config)) {
      design.infeasible.push_back(Infeasible(name_of(mask), reason));
      continue;
    }
    DesignArm arm = {name_of(mask), config};
    for (std::size_t i = factors.size(); i-- > 0;) {
      const unsigned without = mask & ~(1u << i);
      if (without == mask || sdpa::WhyInvalid(config_of(without))) continue;
      arm.role = "step";
      arm.toggle = std::string(sdpa::ToggleId(factors[i]));
      arm.base = name_of(without);
      break;
    }
    design.arms.push_back(std::move(arm));
  }
  PlantControls("factorial", design.arms.back().name, &design);
  return design;
}

// The factorial that every build holds: the five toggles whose order in the
// ladder is a choice, on the tile that all of them share.
inline Design DeclaredFactorialDesign() {
  using sdpa::Config;
  return FactorialDesign("factorial",
                         {&Config::warp_shuffle, &Config::vector_loads, &Config::wmma_qk,
                          &Config::cp_async_stages, &Config::wmma_pv},
                         {.kv_tiling = 1, .tile_m32_warps4 = 1});
}

// Whether the prediction of a technique beyond a ladder is one of the verdict on `candidate`: it
// was made for the first on-level, on certain arms.
inline bool IsPredicted(const Design& design, const sdpa::ToggleRow& row,
                        std::string_view candidate) {
  if (row.in_ladder) return false;
  return std::any_of(design.arms.begin(), design.arms.end(), [&](const DesignArm& arm) {
    const bool adds = arm.role == "step";
    if (arm.toggle != row.id || (!adds && arm.role != "without")) return false;
    const std::string& base = adds ? arm.base : arm.name;
    const std::string& with = adds ? arm.name : arm.base;
    return with == candidate && ConfigOf(design, with).*row.field == FirstOnLevel(row) &&
           std::find(design.predicted_on.begin(), design.predicted_on.end(), base) !=
               design.predicted_on.end();
  });
}

}  // namespace warpledger::ablations
