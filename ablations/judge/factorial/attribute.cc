// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/factorial/attribute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ablations/base/json_text.h"
#include "ablations/stats/factorial/main_effects.h"
#include "ablations/stats/verdict.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

using analysis::CellGains;
using analysis::Contrast;
using analysis::Interval;
using analysis::Lattice;
using analysis::Timing;

absl::Status NoFactorial(const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("run.json: the arms make no factorial: ", why, "; the record is not whole"));
}

// A contrast's estimate and interval; null all three where it has no terms.
struct Figure {
  std::optional<double> value;
  std::optional<Interval> interval;
};

Figure FigureOf(const CellGains* gains, const Contrast& contrast, double confidence) {
  if (gains == nullptr || contrast.n_terms == 0) return {};
  return {gains->Estimate(contrast), gains->Envelope(contrast, confidence)};
}

summary::Estimate RatioOf(const Figure& figure) {
  if (!figure.value) return {};
  return summary::RatioOfLogs(*figure.value, figure.interval->low, figure.interval->high);
}

// "cell:warp_shuffle+wmma_qk", as designs.h names the cells that exist.
std::string CellName(const Factorial& factorial, uint32_t mask) {
  std::string on;
  for (size_t i = 0; i < factorial.toggles.size(); ++i) {
    if (mask >> i & 1u) absl::StrAppend(&on, on.empty() ? "" : "+", factorial.toggles[i]);
  }
  return absl::StrCat("cell:", on.empty() ? "none" : on);
}

// A cell without samples can't be used, whatever its checks say.
std::vector<CellData> WithoutEmpty(std::vector<CellData> cells) {
  for (CellData& cell : cells) {
    if (cell.timings.empty() && cell.why_unusable.empty()) cell.why_unusable = "it has no samples";
  }
  return cells;
}

std::string Joined(const std::string& reason, const std::string& further) {
  return absl::StrCat(reason, reason.empty() || further.empty() ? "" : "; ", further);
}

// The cells that have no usable gain, in words; empty when all have.
std::string UnusableCells(const Factorial& factorial, const std::vector<CellData>& cells) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].why_unusable.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", factorial.arms[i]->name, ": ",
                    cells[i].why_unusable);
  }
  return text;
}

}  // namespace

std::vector<std::vector<std::vector<double>>> GainsByProcess(const std::vector<CellData>& cells,
                                                             size_t reference) {
  using Block = std::pair<int, int>;  // process, block
  std::map<Block, std::vector<std::optional<double>>> log_us;
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    if (!cells[cell].why_unusable.empty()) continue;
    for (const Timing& timing : cells[cell].timings) {
      auto& block = log_us[{timing.process, timing.block}];
      block.resize(cells.size());
      block[cell] = std::log(timing.us);
    }
  }
  const auto usable = std::count_if(cells.begin(), cells.end(),
                                    [](const CellData& cell) { return cell.why_unusable.empty(); });
  std::map<int, std::vector<std::vector<double>>> by_process;
  for (const auto& [key, block] : log_us) {
    const auto timed =
        std::count_if(block.begin(), block.end(), [](const auto& us) { return us.has_value(); });
    if (timed < usable) continue;
    std::vector<double>& gains = by_process[key.first].emplace_back();
    for (const std::optional<double>& us : block) gains.push_back(us ? *block[reference] - *us : 0);
  }
  std::vector<std::vector<std::vector<double>>> lists;
  for (auto& [process, blocks] : by_process) lists.push_back(std::move(blocks));
  return lists;
}

absl::StatusOr<Factorial> FindFactorial(const Subject& subject, const RunInfo& run) {
  // Bits follow the order of claims, whatever the order of the arms.
  std::vector<std::string> toggles;
  for (const Claim& claim : subject.claims()) {
    if (std::any_of(run.arms.begin(), run.arms.end(), [&](const Arm& arm) {
          return arm.role == kRoleStep && arm.toggle == claim.id;
        })) {
      toggles.emplace_back(claim.id);
    }
  }
  std::map<std::string, uint32_t> masks;
  std::vector<const Arm*> arms;
  std::vector<uint32_t> cells;
  for (const Arm& arm : run.arms) {
    uint32_t mask = 0;
    if (arm.role == kRoleStep) {
      const auto base = masks.find(arm.base);
      const auto at = std::find(toggles.begin(), toggles.end(), arm.toggle);
      if (base == masks.end() || at == toggles.end()) {
        return NoFactorial(absl::StrCat("'", arm.name, "' stands on no cell before it"));
      }
      mask = base->second | 1u << (at - toggles.begin());
    } else if (arm.role != kRoleBase) {
      continue;
    }
    masks[arm.name] = mask;
    arms.push_back(&arm);
    cells.push_back(mask);
  }
  absl::StatusOr<Lattice> lattice =
      Lattice::Create(static_cast<int>(toggles.size()), std::move(cells));
  if (!lattice.ok()) return NoFactorial(std::string(lattice.status().message()));
  return Factorial{std::move(toggles), std::move(arms), *std::move(lattice)};
}

void AddAttribution(Factorial factorial, const std::string& design, const std::string& shape,
                    const std::vector<CellData>& measured_cells, const AttributionOptions& options,
                    summary::Summary* out) {
  const std::vector<CellData> cells = WithoutEmpty(measured_cells);
  std::vector<bool> usable;
  for (const CellData& cell : cells) usable.push_back(cell.why_unusable.empty());
  factorial.lattice.SetUsable(usable);
  const Lattice& lattice = factorial.lattice;
  // Contrasts are differences of cells, so that any cell will do where the first can't be used.
  const size_t none_on = lattice.LargestCell(0);
  const auto first_usable = std::find(usable.begin(), usable.end(), true) - usable.begin();
  const auto by_process =
      GainsByProcess(cells, usable[none_on] ? none_on : static_cast<size_t>(first_usable));
  std::optional<CellGains> measured;
  if (!by_process.empty()) measured.emplace(by_process, options.bootstrap);
  const CellGains* gains = measured ? &*measured : nullptr;
  const std::string holes = Joined(gains == nullptr ? "no block timed every usable cell" : "",
                                   UnusableCells(factorial, cells));
  const auto figure = [&](const Contrast& c) { return FigureOf(gains, c, options.confidence); };

  const Figure total = figure(lattice.Total());
  const int n = lattice.n_toggles();
  for (int toggle = 0; toggle < n; ++toggle) {
    const Contrast main = lattice.MainEffect(toggle);
    summary::Attribution& row = out->attribution.emplace_back();
    row.design = design;
    row.shape = shape;
    row.toggle = factorial.toggles[toggle];
    row.n_pairs = main.n_terms;
    row.main_effect = RatioOf(figure(main));
    const Figure shapley = figure(lattice.Shapley(toggle));
    if (shapley.value) {
      if (*total.value != 0) row.shapley_share = SixDigits(*shapley.value / *total.value);
      row.shapley_log = SixDigits(*shapley.value);
      row.shapley_log_low = SixDigits(shapley.interval->low);
      row.shapley_log_high = SixDigits(shapley.interval->high);
    }
    row.total_log = SixDigits(total.value);
    if (const std::optional<Lattice::Edge> edge = lattice.FirstEdge(toggle)) {
      row.first_base = factorial.arms[edge->first]->name;
      row.first = RatioOf(figure(lattice.Difference(*edge)));
    }
    if (const std::optional<Lattice::Edge> edge = lattice.LastEdge(toggle)) {
      row.last_base = factorial.arms[edge->first]->name;
      row.last = RatioOf(figure(lattice.Difference(*edge)));
    }
    row.reason = holes;
  }
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const Contrast contrast = lattice.Interaction(a, b);
      const auto effect = [&](int of, int given, bool on) {
        return RatioOf(figure(lattice.EffectGiven(of, given, on))).value;
      };
      summary::Interaction& row = out->interactions.emplace_back();
      row.design = design;
      row.shape = shape;
      row.a = factorial.toggles[a];
      row.b = factorial.toggles[b];
      row.n_quadruples = lattice.EffectGiven(a, b, true).n_terms;
      row.ratio = RatioOf(figure(contrast));
      row.a_without_b = effect(a, b, false);
      row.a_with_b = effect(a, b, true);
      row.b_without_a = effect(b, a, false);
      row.b_with_a = effect(b, a, true);
      row.reason = holes;
      if (holes.empty() && contrast.n_terms == 0) {
        row.reason = "the two are never both free: one needs the other";
      }
    }
  }
}

summary::InfeasibleCell RuledOut(const InfeasibleCell& cell) {
  return {.variant = cell.name,
          .toggle = cell.toggle,
          .missing = cell.missing,
          .why = cell.why,
          .verdict = VerdictName(analysis::Verdict::kNotApplicable)};
}

std::vector<summary::InfeasibleCell> InfeasibleCells(const Subject& subject,
                                                     const Factorial& factorial,
                                                     const std::string& design) {
  // A record can be older than a rule or a name of today: what it timed is not listed, and what
  // it lacks without a rule of today has no reason.
  const std::optional<std::vector<InfeasibleCell>> ruled_out = subject.Infeasible(design);
  const auto timed = [&](const std::string& cell) {
    return std::any_of(factorial.arms.begin(), factorial.arms.end(),
                       [&](const Arm* arm) { return arm->name == cell; });
  };
  std::vector<summary::InfeasibleCell> infeasible;
  for (const InfeasibleCell& cell : ruled_out.value_or(std::vector<InfeasibleCell>())) {
    if (timed(cell.name)) continue;
    infeasible.push_back(RuledOut(cell));
    if (cell.why.empty()) infeasible.back().verdict.clear();
  }
  if (!infeasible.empty()) return infeasible;
  for (uint32_t mask = 0; mask < 1u << factorial.toggles.size(); ++mask) {
    const std::string cell = CellName(factorial, mask);
    if (timed(cell)) continue;
    infeasible.emplace_back().variant = cell;
  }
  return infeasible;
}

namespace {

using analysis::MainEffects;

constexpr char kCellPrefix[] = "cell:";

std::vector<std::string> TogglesOf(const std::string& arm) {
  const std::string names = arm.substr(sizeof(kCellPrefix) - 1);
  if (names == "none") return {};
  return absl::StrSplit(names, '+');
}

}  // namespace

Fraction FindFraction(const Subject& subject, const std::vector<Arm>& arms) {
  Fraction fraction;
  std::set<std::string> named;
  for (const Arm& arm : arms) {
    if (arm.role != kRoleCell || arm.name.rfind(kCellPrefix, 0) != 0) continue;
    fraction.arms.push_back(arm.name);
    for (const std::string& toggle : TogglesOf(arm.name)) named.insert(toggle);
  }
  for (const Claim& claim : subject.claims()) {
    if (named.contains(std::string(claim.id))) fraction.toggles.emplace_back(claim.id);
  }
  for (const std::string& arm : fraction.arms) {
    uint32_t mask = 0;
    for (const std::string& toggle : TogglesOf(arm)) {
      const auto at = std::find(fraction.toggles.begin(), fraction.toggles.end(), toggle);
      if (at != fraction.toggles.end()) mask |= 1u << (at - fraction.toggles.begin());
    }
    fraction.cells.push_back(mask);
  }
  return fraction;
}

absl::StatusOr<std::vector<std::string>> AliasWarnings(const Fraction& fraction) {
  ASSIGN_OR_RETURN(const MainEffects effects,
                   MainEffects::Create(static_cast<int>(fraction.toggles.size()), fraction.cells));
  std::vector<std::string> lines;
  for (size_t i = 0; i < fraction.toggles.size(); ++i) {
    std::vector<std::string> with;
    for (const MainEffects::Alias& alias : effects.Aliases(static_cast<int>(i))) {
      with.push_back(absl::StrFormat("%+.2f %s*%s", alias.coefficient,
                                     fraction.toggles[static_cast<size_t>(alias.a)],
                                     fraction.toggles[static_cast<size_t>(alias.b)]));
    }
    if (!with.empty()) {
      lines.push_back(absl::StrCat(fraction.toggles[i], ": ", absl::StrJoin(with, ", ")));
    }
  }
  return lines;
}

void AddMainEffects(const Fraction& fraction, const std::string& shape,
                    const std::vector<CellData>& measured_cells, const AttributionOptions& options,
                    std::vector<summary::MainEffect>* out) {
  const std::vector<CellData> cells = WithoutEmpty(measured_cells);
  std::vector<CellData> usable;
  std::vector<uint32_t> masks;
  std::string left_out;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].why_unusable.empty()) {
      absl::StrAppend(&left_out, left_out.empty() ? "" : "; ", fraction.arms[i], ": ",
                      cells[i].why_unusable);
      continue;
    }
    usable.push_back(cells[i]);
    masks.push_back(fraction.cells[i]);
  }
  const absl::StatusOr<MainEffects> effects =
      MainEffects::Create(static_cast<int>(fraction.toggles.size()), masks);
  const std::vector<std::vector<std::vector<double>>> by_process = GainsByProcess(usable, 0);
  std::optional<analysis::CellGains> gains;
  if (effects.ok() && !by_process.empty()) gains.emplace(by_process, options.bootstrap);
  std::string reason = left_out;
  if (!effects.ok()) {
    reason = Joined(reason, std::string(effects.status().message()));
  } else if (!gains) {
    reason = Joined(reason, "no block timed every usable cell");
  }
  for (size_t i = 0; i < fraction.toggles.size(); ++i) {
    summary::MainEffect& row = out->emplace_back();
    row.shape = shape;
    row.toggle = fraction.toggles[i];
    row.n_cells = std::ssize(masks);
    row.reason = reason;
    if (gains) {
      const analysis::Contrast effect = effects->Effect(static_cast<int>(i));
      const analysis::Interval interval = gains->Envelope(effect, options.confidence);
      row.ratio = summary::RatioOfLogs(gains->Estimate(effect), interval.low, interval.high);
    }
    if (!effects.ok()) continue;
    for (const MainEffects::Alias& alias : effects->Aliases(static_cast<int>(i))) {
      row.aliases.push_back({.a = fraction.toggles[static_cast<size_t>(alias.a)],
                             .b = fraction.toggles[static_cast<size_t>(alias.b)],
                             .coefficient = SixDigits(alias.coefficient)});
    }
  }
}

}  // namespace warpledger::ablations
