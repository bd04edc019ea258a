// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/summarize_parts.h"
#include "absl/algorithm/container.h"

namespace warpledger::ablations {
namespace {

// What the checks of one arm on inputs of one kind say together.
struct KindFacts {
  std::map<std::pair<int, uint64_t>, double> mean_err;  // by process and seed
  double mean_share = 0;                                // the largest of all checks
  double max_share = 0;
  std::optional<double> lse_share;  // empty: no log-sum-exp was given
  bool correct = true;
};

KindFacts FactsOf(const RecordIndex& index, const std::string& arm, const std::string& shape,
                  std::string_view inputs) {
  KindFacts facts;
  for (const Check& check : index.record().checks) {
    if (check.inputs != inputs || check.shape != shape || check.arm != arm) continue;
    facts.mean_err[{check.process, check.seed}] = check.mean_err;
    facts.mean_share =
        std::max(facts.mean_share, ShareOfLimit(check.mean_err, check.mean_err_limit));
    facts.max_share = std::max(facts.max_share, ShareOfLimit(check.max_err, check.max_err_limit));
    if (!std::isnan(check.lse_err)) {
      facts.lse_share =
          std::max(facts.lse_share.value_or(0), ShareOfLimit(check.lse_err, check.lse_limit));
    }
    facts.correct = facts.correct && check.correct;
  }
  return facts;
}

}  // namespace

std::vector<summary::ErrorChange> ErrorsOf(const RecordIndex& index, const std::string& base,
                                           const std::string& candidate, const std::string& shape) {
  const double most = index.options().error_ratio;
  bool listed = false;
  std::vector<summary::ErrorChange> errors;
  // What the timed graph left is compared with no reference, and its kind is not in this list.
  for (const std::string& kind : index.subject().InputKinds()) {
    const KindFacts without = FactsOf(index, base, shape, kind);
    const KindFacts with = FactsOf(index, candidate, shape, kind);
    double sum_without = 0;
    double sum_with = 0;
    int pairs = 0;
    for (const auto& [process_and_seed, error] : without.mean_err) {
      const auto same = with.mean_err.find(process_and_seed);
      if (same == with.mean_err.end()) continue;
      sum_without += error;
      sum_with += same->second;
      ++pairs;
    }
    if (pairs == 0) continue;
    // An error of 0, as where O is exactly V, has no ratio to speak of: the rule judges it.
    const double ratio = sum_with / sum_without;
    const bool differs = sum_without > 0 && sum_with > 0 && (ratio > most || ratio < 1 / most);
    listed = listed || differs || !without.correct || !with.correct;
    errors.push_back({.inputs = kind,
                      .mean_err = {SixDigits(sum_without / pairs), SixDigits(sum_with / pairs)},
                      .mean_share = {SixDigits(without.mean_share), SixDigits(with.mean_share)},
                      .max_share = {SixDigits(without.max_share), SixDigits(with.max_share)},
                      .lse_share = {SixDigits(without.lse_share), SixDigits(with.lse_share)},
                      .correct = {without.correct, with.correct}});
  }
  if (!listed) errors.clear();
  return errors;
}

std::optional<summary::SameErrors> SameErrorsOf(const RecordIndex& index, const std::string& base,
                                                const std::string& candidate,
                                                const std::string& shape) {
  // A check of the timed graph is of a variant against itself, and its kind is not in this list.
  const std::vector<std::string> kinds = index.subject().InputKinds();
  // As bits, so that NaN is NaN.
  using Errors = std::array<uint64_t, 3>;
  std::map<std::tuple<int, std::string, uint64_t>, Errors> of_base;
  const auto each = [&](const std::string& arm, const auto& take) {
    for (const Check& check : index.record().checks) {
      if (check.arm != arm || check.shape != shape || !absl::c_linear_search(kinds, check.inputs)) {
        continue;
      }
      take(std::tuple(check.process, check.inputs, check.seed),
           Errors{std::bit_cast<uint64_t>(check.max_err), std::bit_cast<uint64_t>(check.mean_err),
                  std::bit_cast<uint64_t>(check.lse_err)});
    }
  };
  each(base, [&](const auto& key, const Errors& errors) { of_base[key] = errors; });
  summary::SameErrors same;
  each(candidate, [&](const auto& key, const Errors& errors) {
    const auto found = of_base.find(key);
    if (found == of_base.end()) return;
    ++same.checks;
    same.same += found->second == errors ? 1 : 0;
  });
  if (same.checks == 0) return std::nullopt;
  return same;
}

}  // namespace warpledger::ablations
