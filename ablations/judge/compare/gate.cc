// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/gate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ablations/base/rounded.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/model/text.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using report::Table;

// The reference kernels' own threshold: a change under 1% is no finding.
const double kReferenceDelta = SummarizeOptions{}.neutral_delta;

std::string WhyRefused(const RunInfo& baseline, const RunInfo& record, bool allow_other_gpu) {
  if (baseline.cache != record.cache) {
    return absl::StrCat("the baseline was measured with cache mode '", baseline.cache,
                        "', the record with '", record.cache, "'; measure both the same way");
  }
  if (allow_other_gpu || SameGpu(baseline, record)) return "";
  const std::string advice =
      "; measure both on one board, or pass --allow_other_gpu to let their difference count";
  if (baseline.gpu.name != record.gpu.name) {
    return absl::StrCat("the baseline was measured on ", baseline.gpu.name, ", the record on ",
                        record.gpu.name, advice);
  }
  return absl::StrCat("two boards of one model: the baseline was measured on ", baseline.gpu.uuid,
                      ", the record on ", record.gpu.uuid, " (", record.gpu.name, ")", advice);
}

// Two decimals below 1%, where a tolerance of a few per mille is decided.
std::string Percent(double fraction) {
  return absl::StrFormat("%+.*f%%", std::fabs(fraction) < 0.00995 ? 2 : 1, 100 * fraction);
}

std::string ChangeText(const GateCell& cell) {
  return cell.change ? Percent(*cell.change) : std::string(report::kNone);
}

std::string IntervalText(const GateCell& cell) {
  if (!cell.change || !std::isfinite(cell.interval.high)) return std::string(report::kNone);
  return absl::StrCat("[", Percent(cell.interval.low), ", ", Percent(cell.interval.high), "]");
}

GateCell Decide(const MatchedCell& matched, double alpha, double tolerance) {
  GateCell cell = {.variant = matched.variant,
                   .config = matched.config,
                   .shape = matched.shape,
                   .outcome = GateOutcome::kCannotTell,
                   .reason = "",
                   .baseline_us = matched.a ? matched.a->p50_us : std::nullopt,
                   .record_us = matched.b ? matched.b->p50_us : std::nullopt,
                   .change = std::nullopt,
                   .interval = {},
                   .adjusted_confidence = 1 - alpha};
  const auto decide = [&cell](GateOutcome outcome, std::string reason) {
    cell.outcome = outcome;
    cell.reason = std::move(reason);
    return cell;
  };
  if (!matched.a) return decide(GateOutcome::kNew, "the baseline has no such cell");
  if (!matched.b) return decide(GateOutcome::kMissing, "the record has no such cell");
  // The reasons of compare.h speak of A and B.
  const std::string key = " (A: baseline, B: record)";
  if (!matched.missing.empty()) return decide(GateOutcome::kMissing, matched.missing + key);
  const analysis::Interval log_ratio = matched.log_ratio->Envelope(1 - alpha);
  cell.change = std::exp(-matched.log_ratio->estimate()) - 1;
  cell.interval = {std::exp(-log_ratio.high) - 1, std::exp(-log_ratio.low) - 1};
  if (!matched.broken.empty()) return decide(GateOutcome::kBroken, matched.broken + key);
  if (!matched.unusable.empty()) return decide(GateOutcome::kCannotTell, matched.unusable + key);

  const std::string allowed = absl::StrFormat("the allowed %+.2g%%", 100 * tolerance);
  const std::string at = absl::StrFormat(" at %.4g%% confidence", 100 * (1 - alpha));
  // On logarithms, where the p-value was taken, so that level and bound agree.
  const double limit = -std::log1p(tolerance);
  if (log_ratio.high < limit) {
    std::string reason = absl::StrCat("slower by at least ", Percent(cell.interval.low), at,
                                      ", which is more than ", allowed);
    if (matched.SameCode()) {
      absl::StrAppend(&reason,
                      "; the kernel's machine code is the same in both, so look at its launch, "
                      "the driver and the machine first");
    }
    return decide(GateOutcome::kRegression, std::move(reason));
  }
  if (log_ratio.low >= limit) {
    return decide(GateOutcome::kPass,
                  absl::StrCat("the change is at most ", Percent(cell.interval.high), at));
  }
  return decide(GateOutcome::kCannotTell,
                absl::StrCat("the interval ", IntervalText(cell), at, " holds ", allowed,
                             "; more processes narrow it"));
}

int ExitOf(const GateResult& result) {
  if (result.Count(GateOutcome::kRegression) > 0) return kGateRegression;
  const int not_compared = result.Count(GateOutcome::kBroken) + result.Count(GateOutcome::kMissing);
  // No cell at all is no pass.
  const bool nothing = result.Count(GateOutcome::kNew) == static_cast<int>(result.cells.size());
  if (!result.why_refused.empty() || not_compared > 0 || nothing) return kGateNotCompared;
  return result.Count(GateOutcome::kCannotTell) > 0 ? kGateCannotTell : kGatePass;
}

const char* ExitMeaning(int exit) {
  switch (exit) {
    case kGatePass:
      return "No regression";
    case kGateRegression:
      return "Regression";
    case kGateCannotTell:
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
    if (const int count = result.Count(outcome); count > 0) {
      words.push_back(absl::StrCat(count, " ", word));
    }
  }
  return absl::StrCat(
      what, "of ", result.cells.size(), " cells, ",
      words.empty() ? "none could be compared" : report::JoinWords(words),
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

std::string CellTable(const std::vector<const GateCell*>& cells) {
  using Align = Table::Align;
  Table table({{"variant"},
               {"shape"},
               {"baseline, µs", Align::kRight},
               {"record, µs", Align::kRight},
               {"time", Align::kRight},
               {"interval"},
               {"outcome"},
               {"why"}});
  const auto code = [](const std::string& text) {
    return absl::StrCat("`", report::EscapeCell(text), "`");
  };
  for (const GateCell* cell : cells) {
    std::string outcome = GateOutcomeName(cell->outcome);
    if (cell->outcome == GateOutcome::kRegression) outcome = absl::StrCat("**", outcome, "**");
    table.AddRow({code(cell->variant), code(cell->shape), report::FormatUs(cell->baseline_us),
                  report::FormatUs(cell->record_us), ChangeText(*cell), IntervalText(*cell),
                  outcome, report::EscapeCell(cell->reason)});
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

int GateResult::Count(GateOutcome outcome) const {
  return static_cast<int>(std::count_if(
      cells.begin(), cells.end(), [&](const GateCell& cell) { return cell.outcome == outcome; }));
}

absl::StatusOr<GateResult> Gate(const JudgedRecord& baseline, const JudgedRecord& record,
                                const GateOptions& options) {
  if (!(options.tolerance > 0 && options.tolerance <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tolerance=", options.tolerance,
        ": it is a fraction above 0 and at most 1; 0.02 lets a cell be 2% slower. No record can "
        "show that nothing is slower at all"));
  }
  const RunInfo& before = baseline.record.run;
  const RunInfo& now = record.record.run;
  GateResult result;
  result.options = options;
  result.baseline = before.run_id;
  result.record = now.run_id;
  result.gpu = now.gpu.name;
  result.why_refused = WhyRefused(before, now, options.allow_other_gpu);
  if (!result.why_refused.empty()) {
    result.exit = ExitOf(result);
    return result;
  }

  const MatchOptions match = {.confidence = options.confidence,
                              .bootstrap_resamples = options.bootstrap_resamples,
                              .bootstrap_seed = options.bootstrap_seed};
  const std::vector<MatchedCell> cells = MatchCells(baseline, record, match);
  const std::vector<analysis::HolmLevel> levels =
      LevelsAgainst(cells, -std::log1p(options.tolerance), options.confidence);
  for (size_t i = 0; i < cells.size(); ++i) {
    result.cells.push_back(Decide(cells[i], levels[i].alpha, options.tolerance));
  }
  for (const auto& [side, judged] : {std::pair("baseline", &baseline), {"record", &record}}) {
    const int64_t missing = judged->summary["provenance"].value("blocks_missing", int64_t{0});
    if (missing == 0) continue;
    result.notes.push_back(absl::StrCat("the ", side, " is unfinished: it lacks ", missing,
                                        " blocks; `warpledger run` on its folder goes on"));
  }
  for (const Reference& reference : MatchReferences(baseline, record, match, kReferenceDelta)) {
    if (!reference.moved) continue;
    result.notes.push_back(absl::StrCat(
        reference.name, " on ", reference.shape, " changed by ", Percent(1 / reference.ratio - 1),
        " [", Percent(1 / reference.interval.high - 1), ", ",
        Percent(1 / reference.interval.low - 1),
        "]. No kernel of ours can change it, so the machine did: measure the baseline again "
        "beside the record"));
  }
  for (const Difference& difference : Differences(before, now)) {
    // Sources are what a gate is there to see change.
    if (difference.what.starts_with("git.") || difference.what.ends_with("_sha256")) continue;
    result.notes.push_back(
        absl::StrCat(difference.what, " was ", difference.a, ", now is ", difference.b));
  }
  result.exit = ExitOf(result);
  return result;
}

GateResult RefusedGate(const std::string& baseline, const std::string& record,
                       const std::string& why, const GateOptions& options) {
  GateResult result;
  result.options = options;
  result.baseline = baseline;
  result.record = record;
  result.why_refused = why;
  result.exit = ExitOf(result);
  return result;
}

Json GateJson(const GateResult& result) {
  Json cells = Json::array();
  for (const GateCell& cell : result.cells) {
    const bool timed = cell.change.has_value();
    // With one process on a side there is no bound.
    const bool bounded = timed && std::isfinite(cell.interval.high);
    cells.push_back(
        {{"variant", cell.variant},
         {"config", cell.config},
         {"shape", cell.shape},
         {"outcome", GateOutcomeName(cell.outcome)},
         {"reason", cell.reason},
         {"baseline_us", Rounded(cell.baseline_us)},
         {"record_us", Rounded(cell.record_us)},
         {"change", Rounded(cell.change)},
         {"ci_low", bounded ? Rounded(cell.interval.low) : Json(nullptr)},
         {"ci_high", bounded ? Rounded(cell.interval.high) : Json(nullptr)},
         {"adjusted_confidence", timed ? Rounded(cell.adjusted_confidence) : Json(nullptr)}});
  }
  return {{"schema_version", kSchemaVersion},
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

std::string GateText(const GateResult& result) {
  std::string text =
      absl::StrCat("Baseline: ", result.baseline, "\nRecord:   ", result.record, "\n\n");
  if (!result.cells.empty()) {
    absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %8s  %-20s %s\n", "variant", "shape",
                                           "time", "interval", "outcome"));
  }
  for (const bool passes : {true, false}) {
    for (const GateCell* cell : ByGravity(result, passes)) {
      // kNone is one column wide and three bytes long, hence not printed here.
      const bool timed = cell->change.has_value();
      const bool bounded = timed && std::isfinite(cell->interval.high);
      absl::StrAppend(&text, absl::StrFormat("%-26s %-16s %8s  %-20s %s\n", cell->variant,
                                             cell->shape, timed ? ChangeText(*cell) : "-",
                                             bounded ? IntervalText(*cell) : "-",
                                             GateOutcomeName(cell->outcome)));
      if (!passes) absl::StrAppend(&text, "    ", cell->reason, "\n");
    }
  }
  for (const std::string& note : result.notes) absl::StrAppend(&text, "note: ", note, "\n");
  absl::StrAppend(&text, result.cells.empty() ? "" : "\n", Sentence(result), "\n");
  return text;
}

std::string GateMarkdown(const GateResult& result) {
  std::string text = absl::StrCat(
      "### Kernel times: ", ExitMeaning(result.exit), "\n\n", Sentence(result), "\n\nRecord `",
      report::EscapeCell(result.record), "` against `", report::EscapeCell(result.baseline), "`",
      result.gpu.empty() ? "" : absl::StrCat(" on ", result.gpu),
      ". Time above 0% is slower. Levels: ", report::FormatPercent(result.options.confidence),
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
    absl::StrAppend(&text, "- ", report::EscapeCell(note), "\n");
  }
  return text;
}

std::string GateJUnit(const GateResult& result) {
  const bool refused = !result.why_refused.empty();
  const int errors =
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

}  // namespace warpledger::ablations
