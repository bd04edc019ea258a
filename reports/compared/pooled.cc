// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "reports/compared/compared.h"
#include "reports/model/plain.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

std::string IntervalOf(const summary::Estimate& ratio) {
  return FormatRatioInterval(ratio.low, ratio.high);
}

std::string Row(const std::string& toggle, const std::string& shape, const std::string& boards,
                const std::string& ratio, const std::string& same, const std::string& another,
                const std::string& gate, const std::string& verdict) {
  return absl::StrFormat("%-24.24s  %-20.20s  %6s  %7s  %-16s  %-16s  %5s  %s\n", toggle, shape,
                         boards, ratio, same, another, gate, verdict);
}

std::string SpreadText(const std::vector<summary::BoardSpread>& spreads) {
  std::string text;
  for (const summary::BoardSpread& spread : spreads) {
    absl::StrAppendFormat(&text, "  %-11s  floor %.3f%%, scale %.3g, slope %.3f%%, df %.3g\n",
                          spread.regime, 100 * spread.floor, spread.scale, 100 * spread.slope,
                          spread.df);
  }
  return text;
}

}  // namespace

std::string PooledText(const summary::Pooled& read) {
  const summary::Pooled pooled = Plain(read);
  std::string text =
      Row("toggle", "shape", "boards", "ratio", "same board", "another board", "gate", "verdict");
  // A table names no GPU and no base where there is no choice.
  std::set<std::string> gpus;
  std::map<std::tuple<std::string, std::string, std::string>, int> times_judged;
  std::map<std::string, int64_t> verdicts;
  for (const summary::PooledComparison& c : pooled.comparisons) {
    gpus.insert(c.gpu);
    ++times_judged[{c.gpu, c.toggle, c.shape}];
    ++verdicts[c.verdict];
  }
  for (const summary::PooledComparison& c : pooled.comparisons) {
    absl::StrAppend(&text, Row(c.toggle, c.shape, absl::StrCat(c.boards.size()),
                               FormatRatioNumber(c.mean_of_boards.value), IntervalOf(c.same_board),
                               IntervalOf(c.another_board_adjusted),
                               absl::StrFormat("%.2f", c.gate), c.verdict));
    std::vector<std::string> more;
    if (gpus.size() > 1) more.push_back(c.gpu);
    if (times_judged[{c.gpu, c.toggle, c.shape}] > 1) more.push_back(absl::StrCat("on ", c.base));
    if (c.boards_to_decide) {
      more.push_back(absl::StrCat(*c.boards_to_decide, " boards that say the same would decide"));
    }
    if (!more.empty()) absl::StrAppend(&text, "    ", absl::StrJoin(more, ", "), "\n");
  }
  std::vector<std::string> counts;
  for (const auto& [verdict, count] : verdicts) counts.push_back(absl::StrCat(count, " ", verdict));
  absl::StrAppend(&text, "\n", Count(static_cast<int64_t>(pooled.comparisons.size()), "comparison"),
                  " of ", Count(pooled.n_records, "record"), ": ",
                  counts.empty() ? "none can be pooled" : JoinWords(counts), ".\n");
  absl::StrAppendFormat(&text,
                        "Same board: the effect in the conditions of a record, at %.0f%%. Another "
                        "board: what a record of another board of the\nkind would say, at the "
                        "level of the claim's family (%.0f%% or more, by the false coverage rate); "
                        "the verdict rests on it.\nHow boards differ, from the ledger:\n",
                        100 * pooled.confidence, 100 * pooled.confidence);
  absl::StrAppend(&text, SpreadText(pooled.spreads));
  for (const auto& [why, count] : pooled.left_out) {
    absl::StrAppend(&text, "Left out: ", count, " of ", why, ".\n");
  }
  constexpr size_t kMostNames = 10;
  for (size_t i = 0; i < std::min(kMostNames, pooled.other_code.size()); ++i) {
    const summary::CodesOfName& name = pooled.other_code[i];
    std::vector<std::string> groups;
    for (const std::vector<std::string>& runs : name.run_ids) {
      groups.push_back(absl::StrJoin(runs, " + "));
    }
    absl::StrAppend(&text,
                    "Not pooled, because the machine code or the problem differs: ", name.toggle,
                    " on ", name.shape, ", ", name.base, " -> ", name.candidate, ": ",
                    absl::StrJoin(groups, " / "), "\n");
  }
  if (pooled.other_code.size() > kMostNames) {
    absl::StrAppend(&text, "So are ", pooled.other_code.size() - kMostNames,
                    " other names; --out=FILE lists all.\n");
  }
  return text;
}

std::string CoverageText(const summary::Coverage& coverage) {
  const auto row = [](const std::string& design, const std::string& regime,
                      const std::string& boards, const std::string& effect,
                      const std::string& records, const std::string& trials,
                      const std::string& covered, const std::string& half_width) {
    return absl::StrFormat("%-26.26s  %-11s  %6s  %8s  %7s  %6s  %7s  %s\n", design, regime, boards,
                           effect, records, trials, covered, half_width);
  };
  std::string text = row("design", "regime", "boards", "effect", "records", "trials", "covered",
                         "median half-width");
  for (const summary::CoverageRow& each : coverage.rows) {
    absl::StrAppend(&text, row(each.design, each.regime, each.boards, each.effect,
                               absl::StrCat(each.records), absl::StrCat(each.trials),
                               absl::StrFormat("%.1f%%", 100 * static_cast<double>(each.covered) /
                                                             static_cast<double>(each.trials)),
                               absl::StrFormat("%.2f%%", each.half_width_percent_p50)));
  }
  absl::StrAppendFormat(
      &text,
      "\nHow often the %.0f%% interval for another board contains the result of a left-out board, "
      "which neither the\ninterval nor the spread between boards used. Rows: by the number of "
      "boards behind the interval, and by the size of\nthe effect; %d boards, %s. The spread of "
      "all boards:\n",
      100 * coverage.confidence, coverage.n_boards, Count(coverage.n_records, "record"));
  absl::StrAppend(&text, SpreadText(coverage.spreads),
                  "\nDifference between two records of one comparison:\n");
  absl::StrAppendFormat(&text, "%-8s  %-11s  %6s  %7s  %7s  %s\n", "board", "regime", "pairs",
                        "median", "rms", "median by the records' own errors");
  for (const summary::RecordDifferences& each : coverage.differences) {
    absl::StrAppendFormat(&text, "%-8s  %-11s  %6d  %6.2f%%  %6.2f%%  %.2f%%\n", each.board,
                          each.regime, each.pairs, each.percent_p50, each.percent_rms,
                          each.expected_percent_p50);
  }
  return text;
}

}  // namespace warpledger::report
