// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/factorial/attribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "ablations/stats/distributions.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::analysis {
namespace {

constexpr uint32_t Bit(int toggle) { return 1u << toggle; }

double Apply(const std::vector<double>& weights, const double* gains) {
  return std::inner_product(weights.begin(), weights.end(), gains, 0.0);
}

// The weight in Shapley's mean of the orders in which exactly `before` of
// `players` come before the toggle: before! (players - before - 1)! / players!.
double OrderWeight(int before, int players) {
  double weight = 1.0 / players;
  // 1 / C(players - 1, before), factor by factor.
  for (int i = 1; i <= before; ++i) {
    weight *= static_cast<double>(i) / static_cast<double>(players - i);
  }
  return weight;
}

}  // namespace

absl::StatusOr<Lattice> Lattice::Create(int n_toggles, std::vector<uint32_t> cells) {
  if (n_toggles < 1 || n_toggles > kMaxLatticeToggles) {
    return absl::InvalidArgumentError(
        absl::StrCat("a factorial has 1 to ", kMaxLatticeToggles, " toggles, not ", n_toggles));
  }
  Lattice lattice;
  lattice.n_toggles_ = n_toggles;
  lattice.cells_ = std::move(cells);
  lattice.usable_.assign(lattice.cells_.size(), true);
  const uint32_t coalitions = Bit(n_toggles);
  for (size_t i = 0; i < lattice.cells_.size(); ++i) {
    if (lattice.cells_[i] >= coalitions || *lattice.Find(lattice.cells_[i]) != i) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cell ", lattice.cells_[i], " is named twice or has more than ", n_toggles, " toggles"));
    }
  }
  if (!lattice.Find(0)) {
    return absl::InvalidArgumentError("the cell with every toggle off is missing");
  }
  for (uint32_t coalition = 0; coalition < coalitions; ++coalition) {
    uint32_t reach = 0;
    for (const uint32_t cell : lattice.cells_) {
      if ((cell & ~coalition) == 0) reach |= cell;
    }
    const std::optional<size_t> largest = lattice.Find(reach);
    if (!largest) {
      return absl::InvalidArgumentError(absl::StrCat("coalition ", coalition,
                                                     " has no largest cell: its cells span ", reach,
                                                     ", which is none of them"));
    }
    lattice.largest_.push_back(*largest);
  }
  return lattice;
}

std::optional<size_t> Lattice::Find(uint32_t mask) const {
  const auto at = std::find(cells_.begin(), cells_.end(), mask);
  if (at == cells_.end()) return std::nullopt;
  return static_cast<size_t>(at - cells_.begin());
}

bool Lattice::AllUsable() const {
  return std::all_of(usable_.begin(), usable_.end(), [](bool usable) { return usable; });
}

void Lattice::Add(size_t cell, double weight, Contrast* contrast) const {
  contrast->weights.resize(cells_.size(), 0.0);
  contrast->weights[cell] += weight;
}

Contrast Lattice::Difference(const Edge& edge) const {
  Contrast contrast;
  Add(edge.first, -1, &contrast);
  Add(edge.second, 1, &contrast);
  contrast.n_terms = usable_[edge.first] && usable_[edge.second] ? 1 : 0;
  return contrast;
}

Contrast Lattice::MainEffect(int toggle) const {
  Contrast sum;
  sum.weights.resize(cells_.size(), 0.0);
  for (size_t off = 0; off < cells_.size(); ++off) {
    if (cells_[off] & Bit(toggle)) continue;
    const std::optional<size_t> on = Find(cells_[off] | Bit(toggle));
    if (!on || !usable_[off] || !usable_[*on]) continue;
    Add(off, -1, &sum);
    Add(*on, 1, &sum);
    ++sum.n_terms;
  }
  for (double& weight : sum.weights) weight /= std::max(1, sum.n_terms);
  return sum;
}

Contrast Lattice::EffectGiven(int a, int b, bool b_on) const {
  Contrast sum;
  sum.weights.resize(cells_.size(), 0.0);
  for (size_t neither = 0; neither < cells_.size(); ++neither) {
    if (cells_[neither] & (Bit(a) | Bit(b))) continue;
    const std::optional<size_t> only_a = Find(cells_[neither] | Bit(a));
    const std::optional<size_t> only_b = Find(cells_[neither] | Bit(b));
    const std::optional<size_t> both = Find(cells_[neither] | Bit(a) | Bit(b));
    if (!only_a || !only_b || !both) continue;
    if (!usable_[neither] || !usable_[*only_a] || !usable_[*only_b] || !usable_[*both]) continue;
    Add(b_on ? *only_b : neither, -1, &sum);
    Add(b_on ? *both : *only_a, 1, &sum);
    ++sum.n_terms;
  }
  for (double& weight : sum.weights) weight /= std::max(1, sum.n_terms);
  return sum;
}

Contrast Lattice::Interaction(int a, int b) const {
  Contrast with = EffectGiven(a, b, true);
  const Contrast without = EffectGiven(a, b, false);
  for (size_t i = 0; i < cells_.size(); ++i) with.weights[i] -= without.weights[i];
  return with;
}

Contrast Lattice::Shapley(int toggle) const {
  Contrast sum;
  sum.weights.resize(cells_.size(), 0.0);
  for (uint32_t others = 0; others < Bit(n_toggles_); ++others) {
    if (others & Bit(toggle)) continue;
    const double weight = OrderWeight(std::popcount(others), n_toggles_);
    Add(LargestCell(others), -weight, &sum);
    Add(LargestCell(others | Bit(toggle)), weight, &sum);
    ++sum.n_terms;
  }
  if (!AllUsable()) sum.n_terms = 0;
  return sum;
}

Contrast Lattice::Total() const {
  Contrast total = Difference({LargestCell(0), LargestCell(Bit(n_toggles_) - 1)});
  if (!AllUsable()) total.n_terms = 0;
  return total;
}

std::optional<Lattice::Edge> Lattice::FirstEdge(int toggle) const {
  std::optional<Edge> found;
  for (size_t off = 0; off < cells_.size(); ++off) {
    if (cells_[off] & Bit(toggle)) continue;
    const std::optional<size_t> on = Find(cells_[off] | Bit(toggle));
    if (!on) continue;
    if (!found || std::popcount(cells_[off]) < std::popcount(cells_[found->first])) {
      found = Edge(off, *on);
    }
  }
  return found;
}

std::optional<Lattice::Edge> Lattice::LastEdge(int toggle) const {
  std::optional<Edge> found;
  for (size_t off = 0; off < cells_.size(); ++off) {
    if (cells_[off] & Bit(toggle)) continue;
    const std::optional<size_t> on = Find(cells_[off] | Bit(toggle));
    if (!on) continue;
    if (!found || std::popcount(cells_[off]) > std::popcount(cells_[found->first])) {
      found = Edge(off, *on);
    }
  }
  return found;
}

CellGains::CellGains(const std::vector<std::vector<std::vector<double>>>& gains,
                     const BootstrapOptions& options) {
  std::vector<const std::vector<double>*> blocks;
  std::vector<std::vector<size_t>> by_process;  // indices into blocks
  for (const std::vector<std::vector<double>>& process : gains) {
    if (process.empty()) continue;
    by_process.emplace_back();
    for (const std::vector<double>& block : process) {
      by_process.back().push_back(blocks.size());
      blocks.push_back(&block);
    }
  }
  const size_t n_cells = blocks.empty() ? 0 : blocks[0]->size();
  const auto medians_of = [&](absl::Span<const size_t> members) {
    std::vector<double> medians;
    for (size_t cell = 0; cell < n_cells; ++cell) {
      std::vector<double> values;
      for (const size_t member : members) values.push_back((*blocks[member])[cell]);
      medians.push_back(Median(std::move(values)));
    }
    return medians;
  };
  std::vector<size_t> all(blocks.size());
  std::iota(all.begin(), all.end(), size_t{0});
  estimates_.resize(n_cells);
  for (const std::vector<size_t>& members : by_process) {
    process_medians_.push_back(medians_of(members));
    for (size_t cell = 0; cell < n_cells; ++cell) {
      estimates_[cell] += process_medians_.back()[cell] / static_cast<double>(by_process.size());
    }
  }

  // Blocks in each cell's order: a resample only counts how often each block was
  // drawn, and every cell's median is found by walking the counts.
  std::vector<std::vector<size_t>> order(n_cells, all);
  for (size_t cell = 0; cell < n_cells; ++cell) {
    std::stable_sort(order[cell].begin(), order[cell].end(),
                     [&](size_t a, size_t b) { return (*blocks[a])[cell] < (*blocks[b])[cell]; });
  }
  Random random(options.seed);
  std::vector<uint32_t> drawn(blocks.size());
  resamples_.reserve(static_cast<size_t>(options.resamples) * n_cells);
  for (int i = 0; i < options.resamples; ++i) {
    std::fill(drawn.begin(), drawn.end(), 0);
    size_t total = 0;
    if (by_process.size() == 1) {
      const uint32_t size = static_cast<uint32_t>(by_process[0].size());
      for (uint32_t k = 0; k < size; ++k) ++drawn[by_process[0][random.Below(size)]];
      total = size;
    }
    for (size_t slot = 0; by_process.size() > 1 && slot < by_process.size(); ++slot) {
      const std::vector<size_t>& process =
          by_process[random.Below(static_cast<uint32_t>(by_process.size()))];
      for (const size_t block : process) ++drawn[block];
      total += process.size();
    }
    for (size_t cell = 0; cell < n_cells; ++cell) {
      // The order statistics (total - 1) / 2 and total / 2, from 0.
      size_t at = 0;
      size_t seen = drawn[order[cell][0]];
      while (seen <= (total - 1) / 2) seen += drawn[order[cell][++at]];
      const double lower = (*blocks[order[cell][at]])[cell];
      while (seen <= total / 2) seen += drawn[order[cell][++at]];
      resamples_.push_back(lower + 0.5 * ((*blocks[order[cell][at]])[cell] - lower));
    }
  }
}

double CellGains::Estimate(const Contrast& contrast) const {
  return Apply(contrast.weights, estimates_.data());
}

Interval CellGains::Envelope(const Contrast& contrast, double confidence) const {
  const size_t n_cells = estimates_.size();
  std::vector<double> values;
  for (size_t at = 0; at < resamples_.size(); at += n_cells) {
    values.push_back(Apply(contrast.weights, &resamples_[at]));
  }
  std::sort(values.begin(), values.end());
  const double tail = 0.5 * (1 - confidence);
  const double estimate = Estimate(contrast);
  Interval interval = {std::min(estimate, SortedQuantile(values, tail)),
                       std::max(estimate, SortedQuantile(values, 1 - tail))};
  if (n_processes() < 2) return interval;
  double mean = 0;
  for (const std::vector<double>& medians : process_medians_) {
    mean += Apply(contrast.weights, medians.data()) / n_processes();
  }
  double squares = 0;
  for (const std::vector<double>& medians : process_medians_) {
    const double deviation = Apply(contrast.weights, medians.data()) - mean;
    squares += deviation * deviation;
  }
  const double error = std::sqrt(squares / (n_processes() - 1) / n_processes());
  const double half_width = StudentCritical(1 - confidence, n_processes() - 1) * error;
  return {std::min(interval.low, mean - half_width), std::max(interval.high, mean + half_width)};
}

}  // namespace warpledger::analysis
