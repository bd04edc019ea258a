// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/attribute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ablations/base/rounded.h"
#include "ablations/stats/verdict.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using analysis::CellGains;
using analysis::Contrast;
using analysis::Interval;
using analysis::Lattice;
using analysis::Timing;

absl::Status NoFactorial(const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("run.json: the arms make no factorial: ", why, "; the record is not whole"));
}

// ln(time(cell 0) / time(cell)) of every cell, for each block that timed all.
std::vector<std::vector<std::vector<double>>> GainsByProcess(const std::vector<CellData>& cells,
                                                             size_t empty_cell) {
  using Block = std::pair<int, int>;  // process, block
  std::map<Block, std::vector<std::optional<double>>> log_us;
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    for (const Timing& timing : cells[cell].timings) {
      auto& block = log_us[{timing.process, timing.block}];
      block.resize(cells.size());
      block[cell] = std::log(timing.us);
    }
  }
  std::map<int, std::vector<std::vector<double>>> by_process;
  for (const auto& [key, block] : log_us) {
    if (std::any_of(block.begin(), block.end(), [](const auto& us) { return !us; })) continue;
    std::vector<double>& gains = by_process[key.first].emplace_back();
    for (const std::optional<double>& us : block) gains.push_back(*block[empty_cell] - *us);
  }
  std::vector<std::vector<std::vector<double>>> lists;
  for (auto& [process, blocks] : by_process) lists.push_back(std::move(blocks));
  return lists;
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

void AddRatio(const Figure& figure, const char* name, const char* low, const char* high,
              Json* row) {
  (*row)[name] = figure.value ? Rounded(std::exp(*figure.value)) : Json(nullptr);
  (*row)[low] = figure.interval ? Rounded(std::exp(figure.interval->low)) : Json(nullptr);
  (*row)[high] = figure.interval ? Rounded(std::exp(figure.interval->high)) : Json(nullptr);
}

// "cell:warp_shuffle+wmma_qk", as designs.h names the cells that exist.
std::string CellName(const Factorial& factorial, uint32_t mask) {
  std::string on;
  for (size_t i = 0; i < factorial.toggles.size(); ++i) {
    if (mask >> i & 1u) absl::StrAppend(&on, on.empty() ? "" : "+", factorial.toggles[i]);
  }
  return absl::StrCat("cell:", on.empty() ? "none" : on);
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
                    const std::vector<CellData>& cells, const AttributionOptions& options,
                    Json* summary) {
  std::vector<bool> usable;
  for (const CellData& cell : cells) usable.push_back(cell.why_unusable.empty());
  factorial.lattice.SetUsable(usable);
  const Lattice& lattice = factorial.lattice;
  const auto by_process = GainsByProcess(cells, lattice.LargestCell(0));
  std::optional<CellGains> measured;
  if (!by_process.empty()) measured.emplace(by_process, options.bootstrap);
  const CellGains* gains = measured ? &*measured : nullptr;
  const std::string holes =
      gains == nullptr ? "no block timed every cell" : UnusableCells(factorial, cells);
  const auto figure = [&](const Contrast& c) { return FigureOf(gains, c, options.confidence); };

  const Figure total = figure(lattice.Total());
  const int n = lattice.n_toggles();
  for (int toggle = 0; toggle < n; ++toggle) {
    const Contrast main = lattice.MainEffect(toggle);
    Json row = {{"design", design},
                {"shape", shape},
                {"toggle", factorial.toggles[toggle]},
                {"n_pairs", main.n_terms}};
    AddRatio(figure(main), "main_effect_ratio", "ci_low", "ci_high", &row);
    const Figure shapley = figure(lattice.Shapley(toggle));
    row["shapley_share"] =
        shapley.value && *total.value != 0 ? Rounded(*shapley.value / *total.value) : Json(nullptr);
    row["shapley_log"] = Rounded(shapley.value);
    row["shapley_log_low"] = shapley.interval ? Rounded(shapley.interval->low) : Json(nullptr);
    row["shapley_log_high"] = shapley.interval ? Rounded(shapley.interval->high) : Json(nullptr);
    row["total_log"] = Rounded(total.value);
    const auto add_edge = [&](const char* name, const std::optional<Lattice::Edge>& edge) {
      const std::string prefix(name);
      row[prefix + "_base"] = edge ? Json(factorial.arms[edge->first]->name) : Json(nullptr);
      AddRatio(edge ? figure(lattice.Difference(*edge)) : Figure{}, (prefix + "_ratio").c_str(),
               (prefix + "_low").c_str(), (prefix + "_high").c_str(), &row);
    };
    add_edge("first", lattice.FirstEdge(toggle));
    add_edge("last", lattice.LastEdge(toggle));
    row["reason"] = holes;
    (*summary)["attribution"].push_back(std::move(row));
  }
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const Contrast contrast = lattice.Interaction(a, b);
      Json row = {{"design", design},
                  {"shape", shape},
                  {"a", factorial.toggles[a]},
                  {"b", factorial.toggles[b]},
                  {"n_quadruples", lattice.EffectGiven(a, b, true).n_terms}};
      AddRatio(figure(contrast), "interaction_ratio", "ci_low", "ci_high", &row);
      for (const auto& [name, of, given, on] :
           {std::tuple("a_without_b", a, b, false), std::tuple("a_with_b", a, b, true),
            std::tuple("b_without_a", b, a, false), std::tuple("b_with_a", b, a, true)}) {
        const Figure effect = figure(lattice.EffectGiven(of, given, on));
        row[name] = effect.value ? Rounded(std::exp(*effect.value)) : Json(nullptr);
      }
      std::string reason = holes;
      if (reason.empty() && contrast.n_terms == 0) {
        reason = "the two are never both free: one needs the other";
      }
      row["reason"] = reason;
      (*summary)["interactions"].push_back(std::move(row));
    }
  }
}

Json InfeasibleCells(const Subject& subject, const Factorial& factorial,
                     const std::string& design) {
  // A record can be older than a rule or a name of today: what it timed is not listed, and what
  // it lacks without a rule of today has no reason.
  const std::optional<std::vector<InfeasibleCell>> ruled_out = subject.Infeasible(design);
  const auto timed = [&](const std::string& cell) {
    return std::any_of(factorial.arms.begin(), factorial.arms.end(),
                       [&](const Arm* arm) { return arm->name == cell; });
  };
  Json infeasible = Json::array();
  for (const InfeasibleCell& cell : ruled_out.value_or(std::vector<InfeasibleCell>())) {
    if (timed(cell.name)) continue;
    infeasible.push_back(
        {{"variant", cell.name}, {"toggle", cell.toggle}, {"missing", cell.missing}});
    if (cell.why.empty()) continue;
    infeasible.back()["why"] = cell.why;
    infeasible.back()["verdict"] = VerdictName(analysis::Verdict::kNotApplicable);
  }
  if (!infeasible.empty()) return infeasible;
  for (uint32_t mask = 0; mask < 1u << factorial.toggles.size(); ++mask) {
    const std::string cell = CellName(factorial, mask);
    if (timed(cell)) continue;
    infeasible.push_back({{"variant", cell}, {"toggle", nullptr}, {"missing", nullptr}});
  }
  return infeasible;
}

}  // namespace warpledger::ablations
