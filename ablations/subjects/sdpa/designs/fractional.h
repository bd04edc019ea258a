// SPDX-License-Identifier: Apache-2.0
// Designs for more toggles than a full factorial can span, and for the levels of
// one toggle.
//
//   fractional  a regular 2^(k-p) fraction of k toggles, of resolution IV or more
//   sweep       one toggle at each of its levels, all against its first
//
// The fraction: q basic toggles span all 2^q combinations, and each further one is
// a product of basic ones, its word. Words of odd length, all different, give
// resolution IV: no main effect is aliased with another or with an interaction of
// two; interactions of two are aliased among themselves. q basic toggles have
// 2^(q-1) such words, themselves included. Where one word is enough, it is the
// product of all basic toggles: resolution q + 1. Signs are such that the cell
// with everything off belongs to the fraction.
//
// Requirements forbid some cells, and then the rest is no longer regular: which
// toggles are basic, and which word each other one has, is searched for the most
// feasible cells. What is aliased among those is computed, not assumed
// (analysis/main_effects.h), and main effects are estimated by least squares.
//
// Contract: pure functions of their arguments; standard library only.
//
//   Design design = FractionalDesign("fractional:a,b,c,d", factors, background);

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/designs.h"

namespace warpledger::ablations {

inline constexpr std::size_t kMinFractionFactors = 4;
inline constexpr std::size_t kMaxFractionFactors = 16;

// A column of the fraction: the product of the basic columns in `word` (a bit mask),
// times `sign`. A basic column's word is itself.
struct FractionColumn {
  unsigned word = 0;
  int sign = 1;
};

// Of k columns in [kMinFractionFactors, kMaxFractionFactors].
inline int BasicColumns(std::size_t k) {
  int q = 3;
  while ((std::size_t{1} << (q - 1)) < k) ++q;
  return q;
}

inline int Bits(unsigned word) {
  int bits = 0;
  for (; word != 0; word &= word - 1) ++bits;
  return bits;
}

inline std::vector<FractionColumn> FractionColumns(std::size_t k) {
  const int q = BasicColumns(k);
  std::vector<FractionColumn> columns;
  for (int i = 0; i < q; ++i) columns.push_back({1u << i, 1});
  if (k == static_cast<std::size_t>(q) + 1) {
    columns.push_back({(1u << q) - 1, q % 2 == 1 ? 1 : -1});
    return columns;
  }
  for (int length = 3; length <= q; length += 2) {
    for (unsigned word = 0; word < 1u << q && columns.size() < k; ++word) {
      if (Bits(word) == length) columns.push_back({word, 1});
    }
  }
  return columns;
}

// Which columns are on in cell `run` of 2^q, as a bit mask; cell 0 has none on.
inline uint32_t FractionCell(const std::vector<FractionColumn>& columns, unsigned run) {
  uint32_t on = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    // A product of +1 (on) and -1 (off) is +1 when an even number of them is off.
    const int off = Bits(columns[i].word & ~run);
    if ((off % 2 == 0 ? 1 : -1) * columns[i].sign > 0) on |= 1u << i;
  }
  return on;
}

namespace internal {

inline sdpa::Config ConfigOf(const std::vector<sdpa::ToggleField>& factors, uint32_t mask,
                             sdpa::Config config) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(mask >> i & 1u)) continue;
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.field == factors[i]) config.*row.field = FirstOnLevel(row);
    }
  }
  return config;
}

// The cells as masks over the factors, when factor i stands in column place[i].
inline std::vector<uint32_t> FractionMasks(const std::vector<FractionColumn>& columns, int q,
                                           const std::vector<std::size_t>& place) {
  std::vector<uint32_t> masks;
  for (unsigned run = 0; run < 1u << q; ++run) {
    const uint32_t on = FractionCell(columns, run);
    uint32_t mask = 0;
    for (std::size_t i = 0; i < place.size(); ++i) mask |= (on >> place[i] & 1u) << i;
    masks.push_back(mask);
  }
  return masks;
}

}  // namespace internal

// The fraction of `factors` (in registry order) on top of `background` and of all
// that the factors need beyond themselves. Cells are arms of the role `cell`.
inline Design FractionalDesign(std::string name, const std::vector<sdpa::ToggleField>& factors,
                               const sdpa::Config& background) {
  sdpa::Config fixed = background;
  for (const sdpa::ToggleField factor : factors) AddNeeds(factor, &fixed);
  for (const sdpa::ToggleField factor : factors) fixed.*factor = 0;
  const std::vector<FractionColumn> columns = FractionColumns(factors.size());
  const int q = BasicColumns(factors.size());
  const auto feasible = [&](uint32_t mask) {
    return !sdpa::WhyInvalid(internal::ConfigOf(factors, mask, fixed));
  };

  // Places by hill climbing: swap two factors while that makes more cells feasible.
  std::vector<std::size_t> place(factors.size());
  std::iota(place.begin(), place.end(), std::size_t{0});
  const auto count = [&](const std::vector<std::size_t>& candidate) {
    const std::vector<uint32_t> masks = internal::FractionMasks(columns, q, candidate);
    return std::count_if(masks.begin(), masks.end(), feasible);
  };
  auto best = count(place);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t i = 0; i < place.size(); ++i) {
      for (std::size_t j = i + 1; j < place.size(); ++j) {
        std::swap(place[i], place[j]);
        const auto now = count(place);
        better = better || now > best;
        if (now > best)
          best = now;
        else
          std::swap(place[i], place[j]);
      }
    }
  }

  // "d = a b c" for each factor that is a product of others.
  std::vector<std::string> in_column(factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) in_column[place[i]] = sdpa::ToggleId(factors[i]);
  std::string words;
  for (std::size_t c = static_cast<std::size_t>(q); c < columns.size(); ++c) {
    if (!words.empty()) words += "; ";
    words += in_column[c];
    words += columns[c].sign > 0 ? " =" : " = -";
    for (int i = 0; i < q; ++i) {
      if (columns[c].word >> i & 1u)
        words.append(" ").append(in_column[static_cast<std::size_t>(i)]);
    }
  }
  const int resolution = factors.size() == static_cast<std::size_t>(q) + 1 ? q + 1 : 4;
  Design design = {.name = std::move(name),
                   .label = "fraction 2^(" + std::to_string(factors.size()) + "-" +
                            std::to_string(factors.size() - static_cast<std::size_t>(q)) +
                            ") of resolution " + std::to_string(resolution) + " on top of " +
                            sdpa::ConfigName(fixed) + ": " + words,
                   .arms = {},
                   .span = Span::kFractional};
  for (const uint32_t mask : internal::FractionMasks(columns, q, place)) {
    std::string cell = "cell:";
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!(mask >> i & 1u)) continue;
      if (cell.back() != ':') cell += "+";
      cell += sdpa::ToggleId(factors[i]);
    }
    if (mask == 0) cell += "none";
    const sdpa::Config config = internal::ConfigOf(factors, mask, fixed);
    if (const sdpa::InvalidReason reason = sdpa::WhyInvalid(config)) {
      design.infeasible.push_back(Infeasible(cell, reason));
      continue;
    }
    design.arms.push_back({cell, config, "cell"});
  }
  PlantControls("fractional", design.arms.back().name, &design);
  return design;
}

// `row` at each of its levels on top of `background` and of what it needs; levels
// above the first are judged against the first, since one level need not have more
// of the toggle's instructions than another.
inline Design SweepDesign(std::string name, const sdpa::ToggleRow& row,
                          const sdpa::Config& background) {
  sdpa::Config config = background;
  AddNeeds(row.field, &config);
  config.*row.field = row.levels.values[0];
  DropDependents(&config);
  const std::string id(row.id);
  const auto at = [&](int level) {
    std::string arm = "sweep:";
    return arm.append(id).append("=").append(std::to_string(level));
  };
  const std::string first = at(row.levels.values[0]);
  Design design = {.name = std::move(name),
                   .label = id + " at each of its levels on top of " + sdpa::ConfigName(config),
                   .arms = {{first, config}}};
  for (const int level : OnLevels(row)) AddStep(at(level), {row.field, level}, first, &design);
  PlantControls("sweep", design.arms.back().name, &design);
  return design;
}

}  // namespace warpledger::ablations
