// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "ablations/base/json_text.h"
#include "ablations/stats/distributions.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

using analysis::Interval;

struct Outcome {
  std::string name;
  std::string reason;
};

Outcome OutcomeOf(const MatchedCell& cell, double alpha, double neutral_delta) {
  if (!cell.missing.empty()) return {"NOT_COMPARED", cell.missing};
  if (!cell.broken.empty()) return {"NOT_COMPARED", cell.broken};
  if (!cell.unusable.empty()) return {"CANNOT_TELL", cell.unusable};
  const double delta = std::log1p(neutral_delta);
  const Interval equivalence = cell.log_ratio->Envelope(1 - 2 * alpha);
  if (equivalence.low >= -delta && equivalence.high <= delta) {
    return {"SAME",
            absl::StrFormat("the difference is under %.2g%% either way", 100 * neutral_delta)};
  }
  const Interval interval = cell.log_ratio->Envelope(1 - alpha);
  const std::string by = cell.SameCode() ? ", though the machine code is the same" : "";
  if (interval.low > 0) return {"FASTER", absl::StrCat("B is faster", by)};
  if (interval.high < 0) return {"SLOWER", absl::StrCat("B is slower", by)};
  return {"CANNOT_TELL", "the interval contains 1, and more than the neutral zone"};
}

summary::BothSides Sides(const MatchedCell& cell, std::optional<int64_t> CellFacts::*field) {
  return {cell.a ? (*cell.a).*field : std::nullopt, cell.b ? (*cell.b).*field : std::nullopt};
}

std::string CodeState(const MatchedCell& cell) {
  if (!cell.a || !cell.b || cell.a->code_sha256.empty() || cell.b->code_sha256.empty()) {
    return "unknown";
  }
  return cell.SameCode() ? "same" : "changed";
}

summary::ComparedCell ComparedCellOf(const MatchedCell& cell, double alpha, double neutral_delta) {
  Outcome outcome = OutcomeOf(cell, alpha, neutral_delta);
  summary::ComparedCell out;
  out.variant = cell.variant;
  out.config = cell.config;
  out.shape = cell.shape;
  out.outcome = std::move(outcome.name);
  out.reason = std::move(outcome.reason);
  out.registers = Sides(cell, &CellFacts::registers);
  out.smem_bytes = Sides(cell, &CellFacts::smem_bytes);
  out.spill_bytes = Sides(cell, &CellFacts::spill_bytes);
  out.stack_bytes = Sides(cell, &CellFacts::stack_bytes);
  out.code = CodeState(cell);
  if (cell.a) {
    out.n_processes_a = cell.a->n_processes;
    out.p50_us_a = SixDigits(cell.a->p50_us);
  }
  if (cell.b) {
    out.variant_b = cell.b->arm;
    out.n_processes_b = cell.b->n_processes;
    out.p50_us_b = SixDigits(cell.b->p50_us);
  }
  if (!cell.log_ratio || !cell.missing.empty()) return out;
  const Interval interval = cell.log_ratio->Envelope(1 - alpha);
  out.ratio.value = SixDigits(std::exp(cell.log_ratio->estimate()));
  // With one process on a side there is no bound.
  if (std::isfinite(interval.high)) {
    out.ratio.low = SixDigits(std::exp(interval.low));
    out.ratio.high = SixDigits(std::exp(interval.high));
  }
  out.adjusted_confidence = SixDigits(1 - alpha);
  return out;
}

// --- Verdicts ------------------------------------------------------------------

// What a verdict is about, in words that both records understand.
using VerdictKey = std::array<std::string, 4>;  // toggle, base's and candidate's config, shape

std::map<VerdictKey, summary::Verdict> VerdictsOf(const JudgedRecord& judged,
                                                  std::vector<VerdictKey>* order) {
  std::map<std::string, std::string> configs;
  for (const Arm& arm : judged.record.run.arms) configs[arm.name] = arm.config;
  std::map<VerdictKey, summary::Verdict> verdicts;
  for (const summary::Verdict& verdict : judged.summary.verdicts) {
    const VerdictKey key = {verdict.toggle, configs[verdict.base], configs[verdict.candidate],
                            verdict.shape};
    if (verdicts.emplace(key, verdict).second) order->push_back(key);
  }
  return verdicts;
}

int SignOf(const std::string& name) {
  if (name == analysis::VerdictName(analysis::Verdict::kRegression)) return -1;
  return name == analysis::VerdictName(analysis::Verdict::kAdopt) ||
                 name == analysis::VerdictName(analysis::Verdict::kRealBelowGate)
             ? 1
             : 0;
}

bool Decides(const std::string& name) {
  return SignOf(name) != 0 || name == analysis::VerdictName(analysis::Verdict::kNeutral);
}

// Timings spoke for the toggle: it is not INVALID, BROKEN or NOT_APPLICABLE.
bool Answers(const std::string& name) {
  return Decides(name) || name == analysis::VerdictName(analysis::Verdict::kInconclusive);
}

// Of the share of verdicts that agree, were they independent.
double OneSidedLowerBound(int64_t agreed, int64_t decided) {
  return analysis::ClopperPearson(static_cast<int>(agreed), static_cast<int>(decided),
                                  2 * summary::kAgreementConfidence - 1)
      .low;
}

summary::VerdictsCompared CompareVerdicts(const JudgedRecord& a, const JudgedRecord& b) {
  std::vector<VerdictKey> order;
  std::vector<VerdictKey> unused;
  const std::map<VerdictKey, summary::Verdict> of_a = VerdictsOf(a, &order);
  const std::map<VerdictKey, summary::Verdict> of_b = VerdictsOf(b, &unused);
  summary::VerdictsCompared out;
  for (const VerdictKey& key : order) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) continue;
    ++out.compared;
    const summary::Verdict& in_a = of_a.at(key);
    const summary::Verdict& in_b = other->second;
    const bool same = in_a.verdict == in_b.verdict;
    out.unanswered += Answers(in_a.verdict) && Answers(in_b.verdict) ? 0 : 1;
    // A run that can't tell, or that could not ask, neither agrees nor disagrees.
    if (Decides(in_a.verdict) && Decides(in_b.verdict)) {
      ++out.decided;
      out.agreed += same ? 1 : 0;
    }
    if (same) continue;
    const bool flip = SignOf(in_a.verdict) * SignOf(in_b.verdict) < 0;
    out.sign_flips += flip ? 1 : 0;
    out.changed.push_back({.toggle = key[0],
                           .shape = key[3],
                           .base = key[1],
                           .candidate = key[2],
                           .verdict_a = in_a.verdict,
                           .ratio_a = in_a.ratio.value,
                           .verdict_b = in_b.verdict,
                           .ratio_b = in_b.ratio.value,
                           .sign_flip = flip});
  }
  if (out.decided > 0) {
    out.agreed_at_least = SixDigits(OneSidedLowerBound(out.agreed, out.decided));
  }
  out.only_a = static_cast<int64_t>(of_a.size()) - out.compared;
  out.only_b = static_cast<int64_t>(of_b.size()) - out.compared;
  return out;
}

}  // namespace

summary::Comparison Compare(const JudgedRecord& a, const JudgedRecord& b,
                            const SummarizeOptions& options) {
  const MatchOptions match = {.confidence = options.confidence,
                              .bootstrap_resamples = options.bootstrap_resamples,
                              .bootstrap_seed = options.bootstrap_seed};
  const std::vector<MatchedCell> cells = MatchCells(a, b, match);
  const std::vector<analysis::HolmLevel> levels = LevelsAgainst(cells, 0, options.confidence);
  const auto side = [](const RunInfo& run) -> summary::ComparedRun {
    return {run.run_id, run.gpu.name, run.created_utc, run.git.sha, run.kernel_source_sha256};
  };
  summary::Comparison out;
  out.a = side(a.record.run);
  out.b = side(b.record.run);
  out.differences = Differences(a.record.run, b.record.run);
  out.statistics = {
      .confidence = options.confidence,
      .family_size = std::count_if(cells.begin(), cells.end(),
                                   [](const MatchedCell& cell) { return cell.missing.empty(); }),
      .correction = "Holm",
      .neutral_delta = options.neutral_delta,
      .interval =
          "unpaired: the envelope of Welch's on the processes' medians and a cluster bootstrap of "
          "each record"};
  out.verdicts = CompareVerdicts(a, b);
  for (size_t i = 0; i < cells.size(); ++i) {
    out.cells.push_back(ComparedCellOf(cells[i], levels[i].alpha, options.neutral_delta));
  }
  for (const Reference& r : MatchReferences(a, b, match, options.neutral_delta)) {
    out.references.push_back(
        {.name = r.name,
         .shape = r.shape,
         .ratio = {SixDigits(r.ratio), SixDigits(r.interval.low), SixDigits(r.interval.high)},
         .moved = r.moved});
  }
  return out;
}

}  // namespace warpledger::ablations
