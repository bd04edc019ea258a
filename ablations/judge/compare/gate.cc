// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/compare/gate.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

using summary::ChangeInterval;
using summary::ChangePercent;
using summary::GateCell;
using summary::GateOutcome;

// The reference kernels' own threshold: a change under 1% is no finding.
const double kReferenceDelta = SummarizeOptions{}.neutral_delta;

// Of a study that a run measured; empty: it was none.
std::string StudyOf(const RunInfo& run) {
  const auto& definition = run.definition.json;
  if (!definition.is_object() || !definition.contains("study")) return "";
  const auto& study = definition["study"];
  return study.is_object() && study.contains("name") && study["name"].is_string()
             ? study["name"].get<std::string>()
             : "";
}

std::string WhyRefused(const RunInfo& baseline, const RunInfo& record, bool allow_other_gpu) {
  if (baseline.SubjectName() != record.SubjectName()) {
    return absl::StrCat("the baseline measured ", std::string(baseline.SubjectName()),
                        ", the record ", std::string(record.SubjectName()));
  }
  if (StudyOf(baseline) != StudyOf(record)) {
    return absl::StrCat("the baseline is of study '", StudyOf(baseline), "', the record of '",
                        StudyOf(record), "'");
  }
  if (baseline.alone.has_value() != record.alone.has_value()) {
    return "one of the two timed each arm alone, the other arms in turn; measure both the same way";
  }
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

GateCell Decide(const MatchedCell& matched, double alpha, double tolerance) {
  GateCell cell = {.variant = matched.variant,
                   .config = matched.config,
                   .shape = matched.shape,
                   .outcome = GateOutcome::kCannotTell,
                   .reason = "",
                   .baseline_us = matched.a ? matched.a->p50_us : std::nullopt,
                   .record_us = matched.b ? matched.b->p50_us : std::nullopt,
                   .change = std::nullopt,
                   .low = std::nullopt,
                   .high = std::nullopt,
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
  analysis::Interval log_ratio;
  analysis::Interval change;
  if (matched.log_ratio) {
    log_ratio = matched.log_ratio->Envelope(1 - alpha);
    cell.change = std::exp(-matched.log_ratio->estimate()) - 1;
    change = {std::exp(-log_ratio.high) - 1, std::exp(-log_ratio.low) - 1};
    if (std::isfinite(change.high)) {
      cell.low = change.low;
      cell.high = change.high;
    }
  }
  if (!matched.broken.empty()) return decide(GateOutcome::kBroken, matched.broken + key);
  if (!matched.unusable.empty()) return decide(GateOutcome::kCannotTell, matched.unusable + key);

  const std::string allowed = absl::StrFormat("the allowed %+.2g%%", 100 * tolerance);
  const std::string at = absl::StrFormat(" at %.4g%% confidence", 100 * (1 - alpha));
  // On logarithms, where the p-value was taken, so that level and bound agree.
  const double limit = -std::log1p(tolerance);
  if (log_ratio.high < limit) {
    std::string reason = absl::StrCat("slower by at least ", ChangePercent(change.low), at,
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
                  absl::StrCat("the change is at most ", ChangePercent(change.high), at));
  }
  return decide(GateOutcome::kCannotTell,
                absl::StrCat("the interval ", ChangeInterval(change.low, change.high), at,
                             " holds ", allowed, "; more processes narrow it"));
}

int ExitOf(const GateResult& result) {
  if (result.Count(GateOutcome::kRegression) > 0) return summary::kGateRegression;
  const int64_t not_compared =
      result.Count(GateOutcome::kBroken) + result.Count(GateOutcome::kMissing);
  // No cell at all is no pass.
  const bool nothing = result.Count(GateOutcome::kNew) == static_cast<int64_t>(result.cells.size());
  if (!result.why_refused.empty() || not_compared > 0 || nothing) return summary::kGateNotCompared;
  return result.Count(GateOutcome::kCannotTell) > 0 ? summary::kGateCannotTell : summary::kGatePass;
}

}  // namespace

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
    const int64_t missing = judged->summary.provenance.blocks_missing;
    if (missing == 0) continue;
    result.notes.push_back(absl::StrCat("the ", side, " is unfinished: it lacks ", missing,
                                        " blocks; `warpledger run` on its folder goes on"));
  }
  for (const Reference& reference : MatchReferences(baseline, record, match, kReferenceDelta)) {
    if (!reference.moved) continue;
    result.notes.push_back(absl::StrCat(
        reference.name, " on ", reference.shape, " changed by ",
        ChangePercent(1 / reference.ratio - 1), " ",
        ChangeInterval(1 / reference.interval.high - 1, 1 / reference.interval.low - 1),
        ". No kernel of ours can change it, so the machine did: measure the baseline again "
        "beside the record"));
  }
  for (const summary::Difference& difference : Differences(before, now)) {
    // Sources are what a gate is there to see change; how much was measured, the intervals show.
    const std::string& what = difference.what;
    if (what.starts_with("git.") || what.ends_with("sha256")) continue;
    if (what == "seed" || what == "processes" || what == "blocks_per_process") continue;
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

}  // namespace warpledger::ablations
