// SPDX-License-Identifier: Apache-2.0
// What a design is, and the designs that every family shares: ladder, one_on, leave_one_out and
// factorial. designs.h lists all.

#ifndef WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGN_H_
#define WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGN_H_

#include <algorithm>
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
  std::string role;    // base, step, without, aa or null
  std::string toggle;  // what a step or a null control adds, what a `without` leaves out
  std::string base;    // the arm that it is judged against
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

struct Design {
  std::string name;
  std::string label;
  std::vector<DesignArm> arms;
  std::vector<InfeasibleCell> infeasible = {};
  // Its arms are compiled for problems of these; on others they don't apply.
  std::vector<int> head_dims = {64};
  std::vector<sdpa::Dtype> dtypes = {sdpa::Dtype::kFp16};
  bool projected = false;  // for problems that begin with x, and for no others
  bool reads_kv = false;   // memory bounds it: a plain read of K and V is timed beside its arms
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

// The techniques that one kernel can have all at once, in registry order: one
// that is illegal beside those before it belongs to another kernel.
inline std::vector<const sdpa::ToggleRow*> LadderToggles() {
  std::vector<const sdpa::ToggleRow*> rows;
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

// The two controls on top of the arm `base`, named `<prefix>:aa` and so on: the
// same instance under a second name (A/A), and the null toggle, whose machine
// code is the same in a second instance.
inline void PlantControls(const std::string& prefix, const std::string& base,
                          const sdpa::Config& config, Design* design) {
  design->arms.push_back(
      {.name = prefix + ":aa", .config = config, .role = "aa", .toggle = "", .base = base});
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.control) continue;
    sdpa::Config planted = config;
    planted.*row.field = FirstOnLevel(row);
    design->arms.push_back({.name = prefix + ":" + std::string(row.id),
                            .config = planted,
                            .role = "null",
                            .toggle = std::string(row.id),
                            .base = base});
  }
}

// Every technique in registry order, each on top of all before it; then the two
// controls on top of the last step.
inline Design LadderDesign() {
  Design design = {.name = "ladder",
                   .label = "cumulative ladder: each toggle on top of all before it",
                   .arms = {}};
  sdpa::Config config;
  std::string previous(sdpa::kBaseline.id);
  design.arms.push_back(
      {.name = previous, .config = config, .role = "base", .toggle = "", .base = ""});
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    config.*row->field = FirstOnLevel(*row);
    std::string name = "ladder:" + std::string(row->id);
    design.arms.push_back({.name = name,
                           .config = config,
                           .role = "step",
                           .toggle = std::string(row->id),
                           .base = previous});
    previous = std::move(name);
  }
  PlantControls("control", previous, config, &design);
  return design;
}

// --- Requirements ---------------------------------------------------------------

// Turns on what `toggle` needs, and what that needs, but not `toggle` itself.
constexpr void AddNeeds(sdpa::ToggleField toggle, sdpa::Config* config) {
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.field != toggle) continue;
    for (const sdpa::ToggleField need : row.needs) {
      if (need == nullptr) continue;
      AddNeeds(need, config);
      for (const sdpa::ToggleRow& needed : sdpa::kToggles) {
        if (needed.field == need && config->*need == 0) config->*need = FirstOnLevel(needed);
      }
    }
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

// Every technique of the ladder at its first level: its last step.
inline sdpa::Config EverythingOn() {
  sdpa::Config config;
  for (const sdpa::ToggleRow* row : LadderToggles()) config.*row->field = FirstOnLevel(*row);
  return config;
}

// --- The designs beyond the ladder ----------------------------------------------

// Each toggle on the smallest configuration that allows it, against the same
// configuration without it. Where that is an arm already, it is timed once.
inline Design OneOnDesign() {
  Design design = {.name = "one_on",
                   .label = "each toggle alone, with the toggles that it needs",
                   .arms = {{.name = std::string(sdpa::kBaseline.id),
                             .config = {},
                             .role = "base",
                             .toggle = "",
                             .base = ""}}};
  for (const sdpa::ToggleRow* row : LadderToggles()) {
    sdpa::Config config;
    AddNeeds(row->field, &config);
    const auto same = std::find_if(design.arms.begin(), design.arms.end(),
                                   [&](const DesignArm& arm) { return arm.config == config; });
    std::string base = "one_on:needs_of_" + std::string(row->id);
    if (same != design.arms.end()) {
      base = same->name;
    } else {
      design.arms.push_back(
          {.name = base, .config = config, .role = "base", .toggle = "", .base = ""});
    }
    config.*row->field = FirstOnLevel(*row);
    design.arms.push_back({.name = "one_on:" + std::string(row->id),
                           .config = config,
                           .role = "step",
                           .toggle = std::string(row->id),
                           .base = base});
  }
  const DesignArm last = design.arms.back();
  PlantControls("one_on", last.name, last.config, &design);
  return design;
}

// The configuration `full`, and for each of `rows` what is left of it without the
// toggle and without those that need it. The full arm is timed once and judged
// against each of the others, so a `without` arm is the base of its verdict.
inline Design LeaveOneOutOf(const std::string& name, std::string label,
                            const std::vector<const sdpa::ToggleRow*>& rows,
                            const sdpa::Config& full_config) {
  const std::string full = name + ":full";
  Design design = {
      .name = name,
      .label = std::move(label),
      .arms = {{.name = full, .config = full_config, .role = "base", .toggle = "", .base = ""}}};
  const std::string prefix = name == "leave_one_out" ? "" : name + ":";
  for (const sdpa::ToggleRow* row : rows) {
    sdpa::Config alone = full_config;
    alone.*row->field = 0;
    sdpa::Config config = alone;
    DropDependents(&config);
    design.arms.push_back({.name = prefix + "without:" + std::string(row->id) +
                                   (config == alone ? "" : "(+dependents)"),
                           .config = config,
                           .role = "without",
                           .toggle = std::string(row->id),
                           .base = full});
  }
  PlantControls(name, full, full_config, &design);
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
  const auto level_of = [](sdpa::ToggleField field) {
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.field == field) return FirstOnLevel(row);
    }
    return 0;
  };
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
      .arms = {}};
  const unsigned combinations = 1u << factors.size();
  const auto config_of = [&](unsigned mask) {
    sdpa::Config config = fixed;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (mask >> i & 1u) config.*factors[i] = level_of(factors[i]);
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
    DesignArm arm = {
        .name = name_of(mask), .config = config, .role = "base", .toggle = "", .base = ""};
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
  const DesignArm last = design.arms.back();
  PlantControls("factorial", last.name, last.config, &design);
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

// The designs whose order of toggles the registry's predictions speak of.
constexpr bool IsCumulative(std::string_view design) {
  return design == "ladder" || design == "hopper" || design == "hopper_small" || design == "mma";
}

// "factorial", and "factorial:…" as FindDesign() (plan.h) makes them.
constexpr bool IsFactorial(std::string_view design) {
  return design == "factorial" || design.substr(0, 10) == "factorial:";
}

// The toggles of the wgmma family in registry order.
inline std::vector<const sdpa::ToggleRow*> HopperToggles() {
  std::vector<const sdpa::ToggleRow*> rows;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || !row.in_ladder || !Includes(row.families, sdpa::Family::kWgmma)) continue;
    rows.push_back(&row);
  }
  return rows;
}

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_SUBJECTS_SDPA_DESIGNS_DESIGN_H_
