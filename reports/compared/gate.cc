// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "ablations/summary/parts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/sdpa/problem/shapes.h"
#include "reports/compared/compared.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;
using summary::ChangeInterval;
using summary::ChangePercent;
using summary::GateCell;
using summary::GateOutcome;
using summary::GateResult;

Json Figure(const std::optional<double>& value) {
  return ablations::json_fields::Write(summary::SixDigits(value));
}

std::string ChangeText(const GateCell& cell) {
  return cell.change ? ChangePercent(*cell.change) : std::string(kNone);
}

std::string IntervalText(const GateCell& cell) {
  return cell.high ? ChangeInterval(*cell.low, *cell.high) : std::string(kNone);
}

const char* ExitMeaning(int exit) {
  switch (exit) {
    case summary::kGatePass:
      return "No regression";
    case summary::kGateRegression:
      return "Regression";
    case summary::kGateCannotTell:
      return "Can't tell";
    default:
      return "Could not compare";
  }
}

std::string Sentence(const GateResult& result) {
  const std::string what = absl::StrCat(ExitMeaning(result.exit), ": ");
  if (!result.why_refused.empty()) return absl::StrCat(what, result.why_refused, ".");
  std::vector<std::string> words;
  for (const auto& [outcome, word] :
       {std::pair(GateOutcome::kPass, "passed"), std::pair(GateOutcome::kRegression, "regressed"),
        std::pair(GateOutcome::kCannotTell, "can't be told"),
        std::pair(GateOutcome::kBroken, "broken"), std::pair(GateOutcome::kMissing, "missing"),
        std::pair(GateOutcome::kNew, "new")}) {
    if (const int64_t count = result.Count(outcome); count > 0) {
      words.push_back(absl::StrCat(count, " ", word));
    }
  }
  return absl::StrCat(
      what, "of ", result.cells.size(), " cells, ",
      words.empty() ? "none could be compared" : JoinWords(words),
      absl::StrFormat("; a slow-down of up to %.2g%% is allowed.", 100 * result.options.tolerance));
}

// Gravest first.
std::vector<const GateCell*> ByGravity(const GateResult& result, bool passes) {
  std::vector<const GateCell*> cells;
  for (const GateOutcome outcome :
       {GateOutcome::kRegression, GateOutcome::kBroken, GateOutcome::kMissing,
        GateOutcome::kCannotTell, GateOutcome::kNew, GateOutcome::kPass}) {
    if ((outcome == GateOutcome::kPass) != passes) continue;
    for (const GateCell& cell : result.cells) {
      if (cell.outcome == outcome) cells.push_back(&cell);
    }
  }
  return cells;
}

// XML 1.0 has no form at all for most control characters.
std::string Xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// As Plain() of what is described (model/plain.h).
GateResult Shown(GateResult result) {
  for (std::string* text : {&result.baseline, &result.record, &result.gpu, &result.why_refused}) {
    *text = PlainText(*text);
  }
  for (GateCell& cell : result.cells) {
    for (std::string* text : {&cell.variant, &cell.config, &cell.shape, &cell.reason}) {
      *text = sdpa::ShownName(PlainText(*text));
    }
  }
  for (std::string& note : result.notes) note = PlainText(note);
  return result;
}

std::string CellTable(const std::vector<const GateCell*>& cells) {
  Table table("variant | shape | baseline, µs: | record, µs: | time: | interval | outcome | why");
  for (const GateCell* cell : cells) {
    std::string outcome = GateOutcomeName(cell->outcome);
    if (cell->outcome == GateOutcome::kRegression) outcome = absl::StrCat("**", outcome, "**");
    table.AddRow({Code(cell->variant), Code(cell->shape), FormatUs(cell->baseline_us),
                  FormatUs(cell->record_us), ChangeText(*cell), IntervalText(*cell), outcome,
                  cell->reason});
  }
  return table.ToMarkdown();
}

}  // namespace

const char* GateOutcomeName(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::kPass:
      return "PASS";
    case GateOutcome::kRegression:
      return "REGRESSION";
    case GateOutcome::kCannotTell:
      return "CANNOT_TELL";
    case GateOutcome::kBroken:
      return "BROKEN";
    case GateOutcome::kMissing:
      return "MISSING";
    case GateOutcome::kNew:
      return "NEW";
  }
  return "";
}

Json GateJson(const GateResult& result) {
  Json cells = Json::array();
  for (const GateCell& cell : result.cells) {
    cells.push_back(
        {{"variant", cell.variant},
         {"config", cell.config},
         {"shape", cell.shape},
         {"outcome", GateOutcomeName(cell.outcome)},
         {"reason", cell.reason},
         {"baseline_us", Figure(cell.baseline_us)},
         {"record_us", Figure(cell.record_us)},
         {"change", Figure(cell.change)},
         {"ci_low", Figure(cell.low)},
         {"ci_high", Figure(cell.high)},
         {"adjusted_confidence", cell.change ? Figure(cell.adjusted_confidence) : Json(nullptr)}});
  }
  return {{"schema_version", ablations::kSchemaVersion},
          {"baseline", result.baseline},
          {"record", result.record},
          {"gpu", result.gpu},
          {"tolerance", result.options.tolerance},
          {"confidence", result.options.confidence},
          {"exit", result.exit},
          {"summary", Sentence(result)},
          {"cells", std::move(cells)},
          {"notes", result.notes}};
}

std::string GateText(const GateResult& read) {
  const GateResult result = Shown(read);
  std::string text =
      absl::StrCat("Baseline: ", result.baseline, "\nRecord:   ", result.record, "\n\n");
  if (!result.cells.empty()) {
    absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %8s  %-20s %s\n", "variant", "shape",
                                           "time", "interval", "outcome"));
  }
  for (const bool passes : {true, false}) {
    for (const GateCell* cell : ByGravity(result, passes)) {
      // kNone is one column wide and three bytes long, hence not printed here.
      absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %8s  %-20s %s\n", cell->variant,
                                             cell->shape, cell->change ? ChangeText(*cell) : "-",
                                             cell->high ? IntervalText(*cell) : "-",
                                             GateOutcomeName(cell->outcome)));
      if (!passes) absl::StrAppend(&text, "    ", cell->reason, "\n");
    }
  }
  for (const std::string& note : result.notes) absl::StrAppend(&text, "note: ", note, "\n");
  absl::StrAppend(&text, result.cells.empty() ? "" : "\n", Sentence(result), "\n");
  return text;
}

std::string GateMarkdown(const GateResult& read) {
  const GateResult result = Shown(read);
  std::string text =
      absl::StrCat("### Kernel times: ", ExitMeaning(result.exit), "\n\n", Sentence(result),
                   "\n\nRecord `", result.record, "` against `", result.baseline, "`",
                   result.gpu.empty() ? "" : absl::StrCat(" on ", result.gpu),
                   ". Time above 0% is slower. Levels: ", FormatPercent(result.options.confidence),
                   ", by Holm over all cells compared.\n");
  const std::vector<const GateCell*> others = ByGravity(result, /*passes=*/false);
  const std::vector<const GateCell*> passes = ByGravity(result, /*passes=*/true);
  if (!others.empty()) absl::StrAppend(&text, "\n", CellTable(others));
  if (!passes.empty()) {
    absl::StrAppend(&text, "\n<details><summary>", passes.size(), " passed</summary>\n\n",
                    CellTable(passes), "\n</details>\n");
  }
  if (!result.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : result.notes) {
    absl::StrAppend(&text, "- ", note, "\n");
  }
  return text;
}

std::string GateJUnit(const GateResult& result) {
  const bool refused = !result.why_refused.empty();
  const int64_t errors =
      (refused ? 1 : 0) + result.Count(GateOutcome::kBroken) + result.Count(GateOutcome::kMissing);
  const std::string counts =
      absl::StrCat("tests=\"", result.cells.size() + (refused ? 1 : 0), "\" failures=\"",
                   result.Count(GateOutcome::kRegression), "\" errors=\"", errors, "\" skipped=\"",
                   result.Count(GateOutcome::kCannotTell) + result.Count(GateOutcome::kNew), "\"");
  std::string xml = absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"warpledger\" ", counts,
      ">\n <testsuite name=\"warpledger.gate\" ", counts, ">\n  <properties>\n");
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>("baseline", result.baseline),
        {"record", result.record},
        {"gpu", result.gpu},
        {"tolerance", absl::StrCat(result.options.tolerance)},
        {"exit", absl::StrCat(result.exit)}}) {
    absl::StrAppend(&xml, "   <property name=\"", name, "\" value=\"", Xml(value), "\"/>\n");
  }
  absl::StrAppend(&xml, "  </properties>\n");
  if (refused) {
    absl::StrAppend(&xml,
                    "  <testcase classname=\"gate\" name=\"the records can be compared\">\n"
                    "   <error type=\"NOT_COMPARED\" message=\"",
                    Xml(result.why_refused), "\"/>\n  </testcase>\n");
  }
  for (const GateCell& cell : result.cells) {
    absl::StrAppend(&xml, "  <testcase classname=\"", Xml(cell.shape), "\" name=\"",
                    Xml(cell.variant), "\">\n");
    const char* element = nullptr;
    switch (cell.outcome) {
      case GateOutcome::kPass:
        break;
      case GateOutcome::kRegression:
        element = "failure";
        break;
      case GateOutcome::kBroken:
      case GateOutcome::kMissing:
        element = "error";
        break;
      case GateOutcome::kCannotTell:
      case GateOutcome::kNew:
        element = "skipped";
        break;
    }
    const std::string message = absl::StrCat(GateOutcomeName(cell.outcome), ": ", cell.reason);
    if (element == nullptr) {
      absl::StrAppend(&xml, "   <system-out>", Xml(cell.reason), "</system-out>\n");
    } else if (element == std::string("skipped")) {
      // The schema gives `skipped` no type.
      absl::StrAppend(&xml, "   <skipped message=\"", Xml(message), "\"/>\n");
    } else {
      absl::StrAppend(&xml, "   <", element, " type=\"", GateOutcomeName(cell.outcome),
                      "\" message=\"", Xml(message), "\"/>\n");
    }
    absl::StrAppend(&xml, "  </testcase>\n");
  }
  return absl::StrCat(xml, " </testsuite>\n</testsuites>\n");
}

}  // namespace warpledger::report
