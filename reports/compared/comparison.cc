// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "reports/compared/compared.h"
#include "reports/model/describe.h"
#include "reports/model/plain.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using summary::BothSides;
using summary::ChangedVerdict;
using summary::ComparedCell;
using summary::ComparedReference;
using summary::Comparison;
using summary::Difference;
using summary::Estimate;
using summary::VerdictsCompared;

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

// Of ratios and bounds, those beyond all numbers are empty.
std::string RatioText(const Estimate& ratio) {
  return ratio.value ? absl::StrFormat("%.3f", *ratio.value) : "-";
}

std::string IntervalText(const Estimate& ratio) {
  if (!ratio.low || !ratio.high) return "-";
  return absl::StrFormat("[%.3f, %.3f]", *ratio.low, *ratio.high);
}

std::string Us(std::optional<double> us) { return us ? FormatUs(us) : "-"; }

// "registers 116 -> 118", for each resource that differs; "machine code changed"
// where nothing else shows it.
std::vector<std::string> ResourceChanges(const ComparedCell& cell) {
  const std::pair<const char*, const BothSides*> resources[] = {
      {"registers", &cell.registers},
      {"shared memory, B", &cell.smem_bytes},
      {"spills, B", &cell.spill_bytes},
      {"stack, B", &cell.stack_bytes}};
  std::vector<std::string> changes;
  for (const auto& [label, both] : resources) {
    if (!both->a || !both->b || both->a == both->b) continue;
    changes.push_back(absl::StrCat(label, " ", *both->a, " -> ", *both->b));
  }
  if (changes.empty() && cell.code == "changed") changes.push_back("machine code only");
  return changes;
}

// One line per configuration, in order; resources do not depend on the shape.
std::vector<std::pair<std::string, std::string>> ResourceLines(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::set<std::string> seen;
  for (const ComparedCell& cell : comparison.cells) {
    if (!seen.insert(cell.config).second) continue;
    const std::vector<std::string> changes = ResourceChanges(cell);
    if (!changes.empty()) {
      lines.emplace_back(cell.variant, absl::StrJoin(changes, ", "));
    }
  }
  return lines;
}

std::string Counts(const Comparison& comparison) {
  std::map<std::string, int> counts;
  for (const ComparedCell& cell : comparison.cells) ++counts[cell.outcome];
  std::vector<std::string> words;
  for (const auto& [outcome, word] :
       {std::pair("FASTER", "faster"), std::pair("SLOWER", "slower"), std::pair("SAME", "the same"),
        std::pair("CANNOT_TELL", "can't be told"), std::pair("NOT_COMPARED", "not compared")}) {
    if (counts[outcome] > 0) words.push_back(absl::StrCat(counts[outcome], " ", word));
  }
  return words.empty() ? "there is no cell" : JoinWords(words);
}

std::string RunName(const summary::ComparedRun& run) {
  return absl::StrCat(run.run_id, " (", run.gpu, ", ", run.created_utc.substr(0, 10), ")");
}

std::string AgreementSentence(const VerdictsCompared& verdicts) {
  const int64_t decided = verdicts.decided;
  const int64_t agreed = verdicts.agreed;
  if (decided == 0) return "No verdict was decided in both.";
  return absl::StrCat(agreed, " of ", decided, " that neither leaves INCONCLUSIVE",
                      verdicts.unanswered > 0 ? ", INVALID, BROKEN or NOT_APPLICABLE" : "",
                      " agree (",
                      FormatPercent(static_cast<double>(agreed) / static_cast<double>(decided)),
                      absl::StrFormat("; at least %.1f%%", 100 * *verdicts.agreed_at_least),
                      " by a one-sided ", FormatPercent(summary::kAgreementConfidence),
                      " bound, Clopper and Pearson's, were verdicts independent).");
}

std::string VerdictSentence(const VerdictsCompared& verdicts) {
  return absl::StrCat(verdicts.changed.size(), " of ", verdicts.compared, " verdicts differ; ",
                      verdicts.sign_flips, " of them by sign. ", AgreementSentence(verdicts));
}

// Of what differs or moved.
double LogRatio(const Estimate& ratio) {
  return ratio.value ? std::fabs(std::log(*ratio.value)) : HUGE_VAL;
}

// What the counts of faster and slower cells must not be read without; "" where nothing
// speaks against them.
std::string Caveat(const Comparison& comparison) {
  std::map<std::string, int> code;  // of the cells that differ
  for (const ComparedCell& cell : comparison.cells) {
    if (cell.Differs()) ++code[cell.code];
  }
  const int differing = code["same"] + code["changed"] + code["unknown"];
  if (differing == 0) return "";
  std::vector<std::string> sentences;
  const ComparedReference* most = nullptr;
  int moved = 0;
  for (const ComparedReference& reference : comparison.references) {
    if (!reference.moved) continue;
    ++moved;
    if (most == nullptr || LogRatio(reference.ratio) > LogRatio(most->ratio)) most = &reference;
  }
  if (most != nullptr) {
    int beyond = 0;
    for (const ComparedCell& cell : comparison.cells) {
      beyond += cell.Differs() && LogRatio(cell.ratio) > LogRatio(most->ratio) ? 1 : 0;
    }
    sentences.push_back(absl::StrCat(
        "But ", moved, " of ", comparison.references.size(),
        " references, which no kernel of ours can change, moved as well, most of all ", most->name,
        " on ", most->shape, " (", FormatRatio(most->ratio.value), "), and ", beyond, " of the ",
        differing, " cells that differ do so by more than that."));
  }
  if (code["same"] > 0) {
    sentences.push_back(absl::StrCat(code["same"], " of the ", differing,
                                     " have the same machine code on both sides."));
  }
  if (code["changed"] > 0) {
    sentences.push_back(absl::StrCat(
        code["changed"] == differing ? "All of them" : absl::StrCat(code["changed"]),
        " have other machine code in B than in A, so this is no repeat of one measurement."));
  }
  return absl::StrJoin(sentences, " ");
}

std::string VerdictText(const std::string& verdict, std::optional<double> ratio) {
  return absl::StrCat(verdict, " ", FormatRatio(ratio));
}

}  // namespace

std::string ComparisonText(const Comparison& compared) {
  const Comparison comparison = Plain(compared);
  std::string text = absl::StrCat("A: ", RunName(comparison.a), "\nB: ", RunName(comparison.b),
                                  "\nRatios are time(A) / time(B): above 1 B is faster.\n\n");
  const auto row = [&text](const std::string& variant, const std::string& shape,
                           const std::string& a, const std::string& b, const std::string& ratio,
                           const std::string& interval, const std::string& outcome) {
    absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %9s %9s %8s %-18s %s\n", Fit(variant, 26),
                                           Fit(shape, 16), a, b, ratio, interval, outcome));
  };
  row("variant", "shape", "A, us", "B, us", "ratio", "interval", "outcome");
  for (const ComparedCell& cell : comparison.cells) {
    row(cell.variant, cell.shape, Us(cell.p50_us_a), Us(cell.p50_us_b), RatioText(cell.ratio),
        IntervalText(cell.ratio), cell.outcome);
    if (cell.HasNoAnswer()) {
      absl::StrAppend(&text, "    ", cell.reason, "\n");
    }
  }
  const std::string caveat = Caveat(comparison);
  absl::StrAppend(&text, "\n", comparison.cells.size(), " cells: ", Counts(comparison), ".\n",
                  caveat, caveat.empty() ? "" : "\n");
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    absl::StrAppend(&text, "  ", variant, ": ", changes, "\n");
  }
  const VerdictsCompared& verdicts = comparison.verdicts;
  absl::StrAppend(&text, "\n", VerdictSentence(verdicts), "\n");
  for (const ChangedVerdict& change : verdicts.changed) {
    absl::StrAppend(&text, "  ", change.sign_flip ? "SIGN FLIP " : "", change.toggle, " on ",
                    change.shape, ": ", VerdictText(change.verdict_a, change.ratio_a), " -> ",
                    VerdictText(change.verdict_b, change.ratio_b), "\n");
  }
  for (const ComparedReference& reference : comparison.references) {
    if (!reference.moved) continue;
    absl::StrAppend(&text, "\n", reference.name, " on ", reference.shape,
                    ", which no kernel of ours can change, has ratio ", RatioText(reference.ratio),
                    " ", IntervalText(reference.ratio),
                    ": the runs differ in more than their kernels.");
  }
  absl::StrAppend(&text, "\nWhat differs between the runs:",
                  comparison.differences.empty() ? " nothing on record" : "", "\n");
  for (const Difference& difference : comparison.differences) {
    absl::StrAppend(&text, "  ", difference.what, ": ", difference.a, " -> ", difference.b, "\n");
  }
  return text;
}

std::string ComparisonMarkdown(const Comparison& compared) {
  const Comparison comparison = Plain(compared);
  const auto interval = [](const Estimate& ratio) {
    return FormatRatioInterval(ratio.low, ratio.high);
  };
  const std::string caveat = Caveat(comparison);
  std::string text = absl::StrCat(
      "# Two records compared\n\nA is ", Code(RunName(comparison.a)), ", B is ",
      Code(RunName(comparison.b)), ". A ratio is time(A) / time(B): above 1 B is faster. ",
      comparison.cells.size(), " cells: ", Counts(comparison), ".", caveat.empty() ? "" : " ",
      caveat, "\n\n", VerdictSentence(comparison.verdicts),
      "\n\nThe samples of two records have no partners, so the intervals rest on how much whole "
      "processes differ, and are wider than those inside one record. They are at ",
      FormatPercent(comparison.statistics.confidence), " before Holm's correction over ",
      comparison.statistics.family_size, " cells.\n\n## Times\n\n");
  Table times("variant | shape | A, µs: | B, µs: | ratio: | interval | outcome");
  for (const ComparedCell& cell : comparison.cells) {
    std::string outcome = cell.outcome;
    if (cell.HasNoAnswer()) {
      absl::StrAppend(&outcome, " (", cell.reason, ")");
    }
    times.AddRow({Code(cell.variant), Code(cell.shape), Us(cell.p50_us_a), Us(cell.p50_us_b),
                  FormatRatio(cell.ratio.value), interval(cell.ratio), outcome});
  }
  absl::StrAppend(&text, times.ToMarkdown(), "\n## Resources and machine code\n\n");
  Table resources("variant | change");
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    resources.AddRow({Code(variant), changes});
  }
  absl::StrAppend(&text, resources.empty() ? "No difference on record.\n" : resources.ToMarkdown(),
                  "\n## Verdicts that differ\n\n");
  Table verdicts("toggle | shape | in A | in B | sign");
  for (const ChangedVerdict& change : comparison.verdicts.changed) {
    verdicts.AddRow(
        {Code(change.toggle), Code(change.shape), VerdictText(change.verdict_a, change.ratio_a),
         VerdictText(change.verdict_b, change.ratio_b), change.sign_flip ? "**flips**" : "keeps"});
  }
  absl::StrAppend(
      &text, verdicts.empty() ? "None.\n" : verdicts.ToMarkdown(),
      "\n## References\n\nNo kernel of ours can change these. Where one moved, the runs "
      "differ in more than their kernels.\n\n");
  Table references(Cat("reference | shape | ratio: | interval | moved by over ",
                       FormatPercent(comparison.statistics.neutral_delta)));
  for (const ComparedReference& reference : comparison.references) {
    references.AddRow({Code(reference.name), Code(reference.shape),
                       FormatRatio(reference.ratio.value), interval(reference.ratio),
                       reference.moved ? "**yes**" : "not shown"});
  }
  absl::StrAppend(&text, references.empty() ? "The records share none.\n" : references.ToMarkdown(),
                  "\n## What differs between the runs\n\n");
  Table differences("what | A | B");
  for (const Difference& difference : comparison.differences) {
    differences.AddRow({difference.what, Code(difference.a), Code(difference.b)});
  }
  absl::StrAppend(&text, differences.empty() ? "Nothing on record.\n" : differences.ToMarkdown());
  return text;
}

}  // namespace warpledger::report
