// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/rounded.h"
#include "ablations/judge/summarize_parts.h"
#include "ablations/stats/holm.h"
#include "ablations/stats/variance_split.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Pair;

summary::Estimate RatioOf(const analysis::Judgement& judgement) {
  summary::Estimate ratio;
  ratio.value = SixDigits(judgement.ratio);
  if (judgement.interval) {
    ratio.low = SixDigits(judgement.interval->low);
    ratio.high = SixDigits(judgement.interval->high);
  }
  return ratio;
}

summary::Spread SpreadOf(const std::vector<Pair>& pairs) {
  const std::optional<analysis::VarianceSplit> split =
      analysis::SplitVariance(analysis::LogRatiosByProcess(pairs));
  if (!split) return {};
  return {SixDigits(split->within), SixDigits(split->between)};
}

// What a verdict is about: `arm` names the claim, base and candidate the times.
struct Comparison {
  const Arm* arm = nullptr;
  std::string base;
  std::string candidate;
  const ShapeInfo* shape = nullptr;
  std::vector<Pair> pairs;
  std::unique_ptr<ClusterMedian> log_ratio;
  std::string not_applicable;
};

summary::Verdict VerdictOf(const RecordIndex& index, const Comparison& compared, double alpha) {
  const Arm& arm = *compared.arm;
  const Claim& claim = *index.ClaimOf(arm);
  const bool in_family = compared.not_applicable.empty();
  const Arm& base = index.ArmNamed(compared.base);
  const Arm& candidate = index.ArmNamed(compared.candidate);
  std::string invalid = index.WhyToggleInvalid(base, candidate, *compared.shape, arm.toggle);
  if (invalid.empty()) invalid = analysis::WhyConditionsInvalid(compared.pairs);
  const analysis::Judgement judgement = analysis::Judge(
      {.not_applicable = compared.not_applicable,
       .broken = index.WhyBroken({compared.base, compared.candidate}, *compared.shape),
       .invalid = invalid,
       .log_ratio = in_family ? compared.log_ratio.get() : nullptr,
       .alpha = alpha,
       .gate = claim.gate,
       .neutral_delta = index.options().neutral_delta});
  std::set<int> processes;
  for (const Pair& pair : compared.pairs) processes.insert(pair.base.process);

  // A prediction speaks of one shape with a warm L2 and of its ladder's order, or of a
  // technique alone beyond the ladder, and only sound evidence can test it.
  const bool predicted_here =
      claim.predicted.problem == compared.shape->name && index.run().cache == kCacheWarm &&
      index.subject().IsPredictedFor(claim, index.run().design, compared.candidate);
  const bool sound = judgement.interval && judgement.verdict != analysis::Verdict::kBroken &&
                     judgement.verdict != analysis::Verdict::kInvalid &&
                     static_cast<int>(processes.size()) >= analysis::kMinProcesses;
  const analysis::PowerCap cap = analysis::FindPowerCap(compared.pairs);
  std::string reason = judgement.reason;
  const std::string conditions = cap.Any()            ? cap.Text()
                                 : cap.ClocksDiffer() ? cap.ClocksText()
                                                      : "";
  if (!conditions.empty()) absl::StrAppend(&reason, reason.empty() ? "" : "; ", conditions);
  summary::Verdict verdict;
  verdict.toggle = arm.toggle;
  verdict.design = index.run().design;
  verdict.base = compared.base;
  verdict.candidate = compared.candidate;
  verdict.shape = compared.shape->name;
  verdict.n_pairs = std::ssize(compared.pairs);
  verdict.n_processes = std::ssize(processes);
  verdict.ratio = RatioOf(judgement);
  if (in_family) verdict.adjusted_confidence = SixDigits(1 - alpha);
  verdict.gate = claim.gate;
  verdict.verdict = VerdictName(judgement.verdict);
  verdict.reason = std::move(reason);
  verdict.mde_ratio = SixDigits(judgement.mde_ratio);
  verdict.spread = SpreadOf(compared.pairs);
  if (predicted_here) {
    verdict.predicted_low = claim.predicted.low;
    verdict.predicted_high = claim.predicted.high;
  }
  if (predicted_here && sound) {
    verdict.prediction_held = judgement.interval->low <= claim.predicted.high &&
                              judgement.interval->high >= claim.predicted.low;
  }
  verdict.change = CodeChangeOf(index, base, candidate, *compared.shape, claim);
  // Only where it is so: summaries of other records keep their bytes.
  if (cap.Any()) {
    verdict.power_capped = {.base_pairs = cap.base,
                            .candidate_pairs = cap.candidate,
                            .base_sm_mhz = SixDigits(cap.base_mhz),
                            .candidate_sm_mhz = SixDigits(cap.candidate_mhz)};
  }
  if (in_family) {
    verdict.errors = ErrorsOf(index, compared.base, compared.candidate, compared.shape->name);
  }
  return verdict;
}

}  // namespace

std::optional<summary::Control> ControlOf(const RecordIndex& index, const Arm& arm,
                                          const ShapeInfo& shape) {
  const std::vector<Pair> pairs = index.Pairs(arm.base, arm.name, shape.name);
  if (pairs.empty()) return std::nullopt;
  const ClusterMedian log_ratio(analysis::LogRatiosByProcess(pairs),
                                index.Bootstrap("control", arm.name, shape.name));
  analysis::Evidence evidence = {
      .not_applicable = "",
      .broken = "",
      .invalid = "",
      .log_ratio = &log_ratio,
      .alpha = 1 - index.Confidence(shape.name),
      .gate = index.ClaimOf(arm) ? index.ClaimOf(arm)->gate : Claim{}.gate,
      .neutral_delta = index.options().neutral_delta};
  const analysis::Judgement timing = Judge(evidence);
  if (arm.role == kRoleNull) {
    evidence.invalid = index.WhyCodeInvalid(index.ArmNamed(arm.base), arm, shape, arm.toggle);
  }
  summary::Control control;
  control.kind = arm.role;
  control.shape = shape.name;
  control.candidate = arm.name;
  control.ratio = RatioOf(timing);
  control.holds_one = timing.interval->low <= 1 && timing.interval->high >= 1;
  control.timing_verdict = VerdictName(timing.verdict);
  control.verdict = VerdictName(Judge(evidence).verdict);
  control.false_verdict = timing.verdict != analysis::Verdict::kNeutral &&
                          timing.verdict != analysis::Verdict::kInconclusive;
  control.mde_ratio = SixDigits(timing.mde_ratio);
  control.spread = SpreadOf(pairs);
  return control;
}

std::vector<summary::Verdict> VerdictsOf(const RecordIndex& index, int64_t* family_size) {
  std::vector<Comparison> comparisons;
  std::vector<double> p_values;
  for (const Arm& arm : index.run().arms) {
    if (arm.role != kRoleStep && arm.role != kRoleWithout) continue;
    // A `without` arm lacks the toggle, and the arm it names has it.
    const bool adds = arm.role == kRoleStep;
    const std::string& base = adds ? arm.base : arm.name;
    const std::string& candidate = adds ? arm.name : arm.base;
    for (const ShapeInfo& shape : index.run().shapes) {
      Comparison compared = {.arm = &arm,
                             .base = base,
                             .candidate = candidate,
                             .shape = &shape,
                             .pairs = index.Pairs(base, candidate, shape.name),
                             .log_ratio = nullptr,
                             .not_applicable = index.WhyNotApplicable(arm, shape)};
      if (compared.not_applicable.empty() && !arm.base.empty()) {
        compared.not_applicable = index.WhyNotApplicable(index.ArmNamed(arm.base), shape);
      }
      if (!compared.pairs.empty()) {
        compared.log_ratio = std::make_unique<ClusterMedian>(
            analysis::LogRatiosByProcess(compared.pairs),
            index.Bootstrap("verdict", absl::StrCat(arm.toggle, ":", base), shape.name));
      }
      if (compared.not_applicable.empty()) {
        const bool testable = compared.log_ratio != nullptr &&
                              compared.log_ratio->n_clusters() >= analysis::kMinProcesses;
        // Over its share of alpha, the p-value of any look is one of the whole run.
        p_values.push_back(
            testable ? std::min(1.0, compared.log_ratio->PValue(0) / index.AlphaShare(shape.name))
                     : 1);
      }
      comparisons.push_back(std::move(compared));
    }
  }
  const std::vector<analysis::HolmLevel> levels =
      analysis::Holm(p_values, 1 - index.options().confidence);
  *family_size = std::ssize(levels);
  std::vector<summary::Verdict> verdicts;
  size_t member = 0;
  for (const Comparison& compared : comparisons) {
    const double level = compared.not_applicable.empty() ? levels[member++].alpha : 0;
    const double alpha = level * index.AlphaShare(compared.shape->name);
    verdicts.push_back(VerdictOf(index, compared, alpha));
  }
  return verdicts;
}

}  // namespace warpledger::ablations
