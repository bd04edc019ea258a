// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/judge/compare/compare.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "reports/model/text.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using report::Table;

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string RatioText(const Json& item) {
  return item["ratio"].is_number() ? absl::StrFormat("%.3f", item["ratio"].get<double>()) : "-";
}

std::string IntervalText(const Json& item) {
  if (!item["ci_low"].is_number() || !item["ci_high"].is_number()) return "-";
  return absl::StrFormat("[%.3f, %.3f]", item["ci_low"].get<double>(),
                         item["ci_high"].get<double>());
}

// null is what lies beyond all numbers.
std::optional<double> NumberOf(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string Us(const Json& value) {
  return value.is_number() ? report::FormatUs(value.get<double>()) : "-";
}

// "registers 116 -> 118", for each resource that differs; "machine code changed"
// where nothing else shows it.
std::vector<std::string> ResourceChanges(const Json& cell) {
  constexpr std::pair<const char*, const char*> kResources[] = {{"registers", "registers"},
                                                                {"smem_bytes", "shared memory, B"},
                                                                {"spill_bytes", "spills, B"},
                                                                {"stack_bytes", "stack, B"}};
  std::vector<std::string> changes;
  for (const auto& [field, label] : kResources) {
    const Json& both = cell[field];
    if (both["a"].is_null() || both["b"].is_null() || both["a"] == both["b"]) continue;
    changes.push_back(
        absl::StrCat(label, " ", both["a"].get<int64_t>(), " -> ", both["b"].get<int64_t>()));
  }
  if (changes.empty() && cell["code"] == "changed") changes.push_back("machine code only");
  return changes;
}

// One line per configuration, in order; resources do not depend on the shape.
std::vector<std::pair<std::string, std::string>> ResourceLines(const Json& comparison) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::set<std::string> seen;
  for (const Json& cell : comparison["cells"]) {
    if (!seen.insert(TextOf(cell, "config")).second) continue;
    const std::vector<std::string> changes = ResourceChanges(cell);
    if (!changes.empty()) {
      lines.emplace_back(TextOf(cell, "variant"), absl::StrJoin(changes, ", "));
    }
  }
  return lines;
}

std::string Counts(const Json& comparison) {
  std::map<std::string, int> counts;
  for (const Json& cell : comparison["cells"]) ++counts[TextOf(cell, "outcome")];
  std::vector<std::string> words;
  for (const auto& [outcome, word] :
       {std::pair("FASTER", "faster"), std::pair("SLOWER", "slower"), std::pair("SAME", "the same"),
        std::pair("CANNOT_TELL", "can't be told"), std::pair("NOT_COMPARED", "not compared")}) {
    if (counts[outcome] > 0) words.push_back(absl::StrCat(counts[outcome], " ", word));
  }
  return words.empty() ? "there is no cell" : report::JoinWords(words);
}

std::string RunName(const Json& side) {
  return absl::StrCat(TextOf(side, "run_id"), " (", TextOf(side, "gpu"), ", ",
                      TextOf(side, "created_utc").substr(0, 10), ")");
}

std::string AgreementSentence(const Json& verdicts) {
  const int64_t decided = verdicts["decided"].get<int64_t>();
  const int64_t agreed = verdicts["agreed"].get<int64_t>();
  if (decided == 0) return "No verdict was decided in both.";
  return absl::StrCat(
      "Of ", decided, " that neither leaves INCONCLUSIVE",
      verdicts["unanswered"] > 0 ? ", INVALID, BROKEN or NOT_APPLICABLE" : "", ", ", agreed,
      " agree (", report::FormatPercent(static_cast<double>(agreed) / static_cast<double>(decided)),
      absl::StrFormat("; at least %.1f%%", 100 * verdicts["agreed_at_least"].get<double>()),
      " by a one-sided ", report::FormatPercent(kAgreementConfidence),
      " bound, Clopper and Pearson's, were verdicts independent).");
}

std::string VerdictSentence(const Json& verdicts) {
  return absl::StrCat(verdicts["changed"].size(), " of ", verdicts["compared"].get<int64_t>(),
                      " verdicts differ; ", verdicts["sign_flips"].get<int64_t>(),
                      " of them by sign. ", AgreementSentence(verdicts));
}

// Of what differs or moved.
double LogRatio(const Json& item) {
  const std::optional<double> ratio = NumberOf(item["ratio"]);
  return ratio ? std::fabs(std::log(*ratio)) : HUGE_VAL;
}

// What the counts of faster and slower cells must not be read without; "" where nothing
// speaks against them.
std::string Caveat(const Json& comparison) {
  std::map<std::string, int> code;  // of the cells that differ
  for (const Json& cell : comparison["cells"]) {
    const std::string outcome = TextOf(cell, "outcome");
    if (outcome == "FASTER" || outcome == "SLOWER") ++code[TextOf(cell, "code")];
  }
  const int differing = code["same"] + code["changed"] + code["unknown"];
  if (differing == 0) return "";
  std::vector<std::string> sentences;
  const Json* most = nullptr;
  int moved = 0;
  for (const Json& reference : comparison["references"]) {
    if (!reference["moved"].get<bool>()) continue;
    ++moved;
    if (most == nullptr || LogRatio(reference) > LogRatio(*most)) most = &reference;
  }
  if (most != nullptr) {
    int beyond = 0;
    for (const Json& cell : comparison["cells"]) {
      const std::string outcome = TextOf(cell, "outcome");
      beyond += (outcome == "FASTER" || outcome == "SLOWER") && LogRatio(cell) > LogRatio(*most);
    }
    sentences.push_back(
        absl::StrCat("But ", moved, " of ", comparison["references"].size(),
                     " references, which no kernel of ours can change, moved as well, most of all ",
                     TextOf(*most, "name"), " on ", TextOf(*most, "shape"), " (",
                     report::FormatRatio(NumberOf((*most)["ratio"])), "), and ", beyond, " of the ",
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

std::string VerdictText(const Json& change, const char* verdict, const char* ratio) {
  return absl::StrCat(TextOf(change, verdict), " ", report::FormatRatio(NumberOf(change[ratio])));
}

}  // namespace

std::string ComparisonText(const Json& comparison) {
  std::string text =
      absl::StrCat("A: ", RunName(comparison["a"]), "\nB: ", RunName(comparison["b"]),
                   "\nRatios are time(A) / time(B): above 1 B is faster.\n\n");
  const auto row = [&text](const std::string& variant, const std::string& shape,
                           const std::string& a, const std::string& b, const std::string& ratio,
                           const std::string& interval, const std::string& outcome) {
    absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %9s %9s %8s %-18s %s\n", Fit(variant, 26),
                                           Fit(shape, 16), a, b, ratio, interval, outcome));
  };
  row("variant", "shape", "A, us", "B, us", "ratio", "interval", "outcome");
  for (const Json& cell : comparison["cells"]) {
    row(TextOf(cell, "variant"), TextOf(cell, "shape"), Us(cell["p50_us_a"]), Us(cell["p50_us_b"]),
        RatioText(cell), IntervalText(cell), TextOf(cell, "outcome"));
    if (TextOf(cell, "outcome") == "NOT_COMPARED" || TextOf(cell, "outcome") == "CANNOT_TELL") {
      absl::StrAppend(&text, "    ", TextOf(cell, "reason"), "\n");
    }
  }
  const std::string caveat = Caveat(comparison);
  absl::StrAppend(&text, "\n", comparison["cells"].size(), " cells: ", Counts(comparison), ".\n",
                  caveat, caveat.empty() ? "" : "\n");
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    absl::StrAppend(&text, "  ", variant, ": ", changes, "\n");
  }
  const Json& verdicts = comparison["verdicts"];
  absl::StrAppend(&text, "\n", VerdictSentence(verdicts), "\n");
  for (const Json& change : verdicts["changed"]) {
    absl::StrAppend(&text, "  ", change["sign_flip"].get<bool>() ? "SIGN FLIP " : "",
                    TextOf(change, "toggle"), " on ", TextOf(change, "shape"), ": ",
                    VerdictText(change, "verdict_a", "ratio_a"), " -> ",
                    VerdictText(change, "verdict_b", "ratio_b"), "\n");
  }
  for (const Json& reference : comparison["references"]) {
    if (!reference["moved"].get<bool>()) continue;
    absl::StrAppend(&text, "\n", TextOf(reference, "name"), " on ", TextOf(reference, "shape"),
                    ", which no kernel of ours can change, has ratio ", RatioText(reference), " ",
                    IntervalText(reference), ": the runs differ in more than their kernels.");
  }
  absl::StrAppend(&text, "\nWhat differs between the runs:",
                  comparison["differences"].empty() ? " nothing on record" : "", "\n");
  for (const Json& difference : comparison["differences"]) {
    absl::StrAppend(&text, "  ", TextOf(difference, "what"), ": ", TextOf(difference, "a"), " -> ",
                    TextOf(difference, "b"), "\n");
  }
  return text;
}

std::string ComparisonMarkdown(const Json& comparison) {
  using Align = Table::Align;
  const auto code = [](const std::string& text) {
    return absl::StrCat("`", report::EscapeCell(text), "`");
  };
  const auto ratio = [](const Json& item) { return report::FormatRatio(NumberOf(item["ratio"])); };
  const auto interval = [](const Json& item) {
    return report::FormatRatioInterval(NumberOf(item["ci_low"]), NumberOf(item["ci_high"]));
  };
  const std::string caveat = Caveat(comparison);
  std::string text = absl::StrCat(
      "# Two records compared\n\nA is ", code(RunName(comparison["a"])), ", B is ",
      code(RunName(comparison["b"])), ". A ratio is time(A) / time(B): above 1 B is faster. Of ",
      comparison["cells"].size(), " cells, ", Counts(comparison), ".", caveat.empty() ? "" : " ",
      caveat, "\n\n", VerdictSentence(comparison["verdicts"]),
      "\n\nThe samples of two records have no partners, so the intervals rest on how much whole "
      "processes differ, and are wider than those inside one record. They are at ",
      report::FormatPercent(comparison["statistics"]["confidence"].get<double>()),
      " before Holm's correction over ", comparison["statistics"]["family_size"].get<int64_t>(),
      " cells.\n\n## Times\n\n");
  Table times({{"variant"},
               {"shape"},
               {"A, µs", Align::kRight},
               {"B, µs", Align::kRight},
               {"ratio", Align::kRight},
               {"interval"},
               {"outcome"}});
  for (const Json& cell : comparison["cells"]) {
    std::string outcome = TextOf(cell, "outcome");
    if (outcome == "NOT_COMPARED" || outcome == "CANNOT_TELL") {
      absl::StrAppend(&outcome, " (", report::EscapeCell(TextOf(cell, "reason")), ")");
    }
    times.AddRow({code(TextOf(cell, "variant")), code(TextOf(cell, "shape")), Us(cell["p50_us_a"]),
                  Us(cell["p50_us_b"]), ratio(cell), interval(cell), outcome});
  }
  absl::StrAppend(&text, times.ToMarkdown(), "\n## Resources and machine code\n\n");
  Table resources({{"variant"}, {"change"}});
  for (const auto& [variant, changes] : ResourceLines(comparison)) {
    resources.AddRow({code(variant), changes});
  }
  absl::StrAppend(&text, resources.empty() ? "No difference on record.\n" : resources.ToMarkdown(),
                  "\n## Verdicts that differ\n\n");
  Table verdicts({{"toggle"}, {"shape"}, {"in A"}, {"in B"}, {"sign"}});
  for (const Json& change : comparison["verdicts"]["changed"]) {
    verdicts.AddRow({code(TextOf(change, "toggle")), code(TextOf(change, "shape")),
                     VerdictText(change, "verdict_a", "ratio_a"),
                     VerdictText(change, "verdict_b", "ratio_b"),
                     change["sign_flip"].get<bool>() ? "**flips**" : "keeps"});
  }
  absl::StrAppend(
      &text, verdicts.empty() ? "None.\n" : verdicts.ToMarkdown(),
      "\n## References\n\nNo kernel of ours can change these. Where one moved, the runs "
      "differ in more than their kernels.\n\n");
  Table references({{"reference"},
                    {"shape"},
                    {"ratio", Align::kRight},
                    {"interval"},
                    {absl::StrCat("moved by over ",
                                  report::FormatPercent(
                                      comparison["statistics"]["neutral_delta"].get<double>()))}});
  for (const Json& reference : comparison["references"]) {
    references.AddRow({code(TextOf(reference, "name")), code(TextOf(reference, "shape")),
                       ratio(reference), interval(reference),
                       reference["moved"].get<bool>() ? "**yes**" : "not shown"});
  }
  absl::StrAppend(&text, references.empty() ? "The records share none.\n" : references.ToMarkdown(),
                  "\n## What differs between the runs\n\n");
  Table differences({{"what"}, {"A"}, {"B"}});
  for (const Json& difference : comparison["differences"]) {
    differences.AddRow({report::EscapeCell(TextOf(difference, "what")),
                        code(TextOf(difference, "a")), code(TextOf(difference, "b"))});
  }
  absl::StrAppend(&text, differences.empty() ? "Nothing on record.\n" : differences.ToMarkdown());
  return text;
}

}  // namespace warpledger::ablations