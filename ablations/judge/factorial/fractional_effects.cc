// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/factorial/fractional_effects.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ablations/base/json_text.h"
#include "ablations/stats/factorial/main_effects.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
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
                    const std::vector<CellData>& cells, const AttributionOptions& options,
                    std::vector<summary::MainEffect>* out) {
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
    absl::StrAppend(&reason, reason.empty() ? "" : "; ", std::string(effects.status().message()));
  } else if (!gains) {
    absl::StrAppend(&reason, reason.empty() ? "" : "; ", "no block timed every cell");
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
