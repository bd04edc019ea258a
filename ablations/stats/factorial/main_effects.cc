// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/factorial/main_effects.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpledger::analysis {
namespace {

constexpr double kZero = 1e-9;  // sums of +1 and -1 over at most some hundred cells

double Sign(uint32_t cell, int toggle) { return cell >> toggle & 1u ? 1 : -1; }

// The inverse by Gauss and Jordan with row pivots; false when there is none.
bool Invert(std::vector<std::vector<double>> matrix, std::vector<std::vector<double>>* inverse) {
  const size_t n = matrix.size();
  inverse->assign(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) (*inverse)[i][i] = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row) {
      if (std::fabs(matrix[row][column]) > std::fabs(matrix[pivot][column])) pivot = row;
    }
    if (std::fabs(matrix[pivot][column]) < kZero) return false;
    std::swap(matrix[pivot], matrix[column]);
    std::swap((*inverse)[pivot], (*inverse)[column]);
    const double by = matrix[column][column];
    for (size_t k = 0; k < n; ++k) {
      matrix[column][k] /= by;
      (*inverse)[column][k] /= by;
    }
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double times = matrix[row][column];
      for (size_t k = 0; k < n; ++k) {
        matrix[row][k] -= times * matrix[column][k];
        (*inverse)[row][k] -= times * (*inverse)[column][k];
      }
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<MainEffects> MainEffects::Create(int n_toggles, const std::vector<uint32_t>& cells) {
  const size_t terms = static_cast<size_t>(n_toggles) + 1;
  if (n_toggles < 1 || n_toggles > 31 || cells.size() < terms) {
    return absl::InvalidArgumentError(
        absl::StrCat(cells.size(), " cells do not give the effects of ", n_toggles, " toggles"));
  }
  if (std::set<uint32_t>(cells.begin(), cells.end()).size() != cells.size()) {
    return absl::InvalidArgumentError("a cell is named twice");
  }
  // Rows of the model: the constant, then the toggles.
  std::vector<std::vector<double>> rows(terms, std::vector<double>(cells.size(), 1));
  for (size_t term = 1; term < terms; ++term) {
    for (size_t i = 0; i < cells.size(); ++i) {
      rows[term][i] = Sign(cells[i], static_cast<int>(term) - 1);
    }
  }
  std::vector<std::vector<double>> normal(terms, std::vector<double>(terms, 0));
  for (size_t a = 0; a < terms; ++a) {
    for (size_t b = 0; b < terms; ++b) {
      for (size_t i = 0; i < cells.size(); ++i) normal[a][b] += rows[a][i] * rows[b][i];
    }
  }
  std::vector<std::vector<double>> inverse;
  if (!Invert(std::move(normal), &inverse)) {
    return absl::InvalidArgumentError(
        "the cells do not tell the toggles apart: some are always on together, or always off");
  }
  MainEffects effects;
  effects.n_toggles_ = n_toggles;
  effects.cells_ = cells;
  for (size_t term = 1; term < terms; ++term) {
    std::vector<double> weights(cells.size(), 0);
    for (size_t b = 0; b < terms; ++b) {
      for (size_t i = 0; i < cells.size(); ++i) weights[i] += inverse[term][b] * rows[b][i];
    }
    effects.coefficients_.push_back(std::move(weights));
  }
  return effects;
}

Contrast MainEffects::Effect(int toggle) const {
  Contrast contrast;
  contrast.weights = coefficients_[static_cast<size_t>(toggle)];
  for (double& weight : contrast.weights) weight *= 2;
  contrast.n_terms = static_cast<int>(cells_.size());
  return contrast;
}

std::vector<MainEffects::Alias> MainEffects::Aliases(int toggle) const {
  const std::vector<double>& weights = coefficients_[static_cast<size_t>(toggle)];
  std::vector<Alias> aliases;
  for (int a = 0; a < n_toggles_; ++a) {
    for (int b = a + 1; b < n_toggles_; ++b) {
      double coefficient = 0;
      for (size_t i = 0; i < cells_.size(); ++i) {
        coefficient += weights[i] * Sign(cells_[i], a) * Sign(cells_[i], b);
      }
      if (std::fabs(coefficient) > kZero) aliases.push_back({a, b, coefficient});
    }
  }
  return aliases;
}

}  // namespace warpledger::analysis
