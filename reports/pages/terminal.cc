// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/pages/pages.h"

namespace warpledger::report {
namespace {

constexpr int kToggleColumn = 24;
constexpr int kShapeColumn = 22;

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string Row(const std::string& toggle, const std::string& shape, const std::string& ratio,
                const std::string& this_board, const std::string& another_board,
                const std::string& gate, const std::string& verdict) {
  std::string row = absl::StrFormat(
      "%-*s  %-*s  %6s  %-14s  %-14s %4s  %s", kToggleColumn, Fit(toggle, kToggleColumn),
      kShapeColumn, Fit(shape, kShapeColumn), ratio, this_board, another_board, gate, verdict);
  return row + "\n";
}

std::string RatioText(const summary::Estimate& ratio) {
  return ratio.value ? absl::StrFormat("%.3f", *ratio.value) : "-";
}

std::string IntervalText(const std::optional<double>& low, const std::optional<double>& high) {
  if (!low || !high) return "-";
  return absl::StrFormat("[%.3f, %.3f]", *low, *high);
}

std::string RateText(const summary::Rate& rate) {
  return absl::StrCat(rate.count, " of ", rate.of);
}

}  // namespace

std::string VerdictTable(const summary::Summary& summary) {
  std::string table =
      Row("toggle", "shape", "ratio", "this board", "another board", "gate", "verdict");
  std::map<std::pair<std::string, std::string>, int> times_judged;
  for (const summary::Verdict& v : summary.verdicts) ++times_judged[{v.toggle, v.shape}];
  for (const summary::Verdict& v : summary.verdicts) {
    absl::StrAppend(&table, Row(v.toggle, v.shape, RatioText(v.ratio),
                                IntervalText(v.this_board_low, v.this_board_high),
                                IntervalText(v.ratio.low, v.ratio.high),
                                absl::StrFormat("%.2f", v.gate), v.verdict));
    // A factorial judges a toggle in several places.
    if (times_judged[{v.toggle, v.shape}] > 1) absl::StrAppend(&table, "    on ", v.base, "\n");
  }
  for (const summary::Control& c : summary.controls) {
    absl::StrAppend(&table, Row(absl::StrCat("(control) ", c.kind), c.shape, RatioText(c.ratio),
                                IntervalText(c.ratio.low, c.ratio.high), "-", "-", c.verdict));
    if (c.timing_verdict != c.verdict) {
      absl::StrAppend(&table, "    by its times alone: ", c.timing_verdict, "\n");
    }
  }
  return table;
}

std::string CalibrationTable(const summary::CalibrationSummary& summary) {
  const summary::AaTrials& aa = summary.aa;
  const auto neutral = aa.verdicts.find("NEUTRAL");
  std::string table = absl::StrFormat("%-10s  %-12s  %-14s  %-14s  %-16s\n", "planted", "found",
                                      "in a family", "neutral", "contains truth");
  absl::StrAppendFormat(&table, "%-10s  %-12s  %-14s  %-14s  %-16s\n", "0 (A/A)",
                        RateText(aa.false_verdicts), RateText(aa.false_verdicts_in_family),
                        absl::StrCat(neutral == aa.verdicts.end() ? 0 : neutral->second, " of ",
                                     aa.false_verdicts.of),
                        RateText(aa.intervals_holding_truth));
  for (const summary::PlantedSize& plant : summary.plants) {
    absl::StrAppendFormat(&table, "%-10s  %-12s  %-14s  %-14s  %-16s\n",
                          absl::StrFormat("%.2f%%", plant.achieved_percent), RateText(plant.found),
                          RateText(plant.found_in_family), RateText(plant.neutral),
                          RateText(plant.intervals_holding_truth));
  }
  return table;
}

}  // namespace warpledger::report
