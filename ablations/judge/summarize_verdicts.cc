// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/measured.h"
#include "ablations/judge/summarize_parts.h"
#include "ablations/record/record.h"
#include "ablations/stats/family.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/verdict.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

using analysis::Interval;
using analysis::Pair;
using analysis::Verdict;

// What is judged on a shape: `arm` names the claim, or is a control; base and candidate the times.
struct Comparison {
  const Arm* arm = nullptr;
  std::string family;  // of tests
  std::string base;
  std::string candidate;
  const ShapeInfo* shape = nullptr;
  std::vector<Pair> pairs = {};
  std::optional<MeasuredEffect> measured = {};  // where there are pairs
  std::string not_applicable = "";
  std::string broken = "";
  std::string invalid = "";
  const ClaimPrediction* predicted = nullptr;  // null: nobody foresaw a range here
  double alpha = 0;                            // of the family, and of the look
  // The same comparison in joules, of arms that were timed alone.
  bool in_joules = false;

  bool IsSound() const { return not_applicable.empty() && broken.empty() && invalid.empty(); }
  const char* Estimand() const { return measured ? measured->regime->estimand : summary::kTime; }
  bool IsAlone() const { return measured && (measured->regime == &kAlone || in_joules); }
};

summary::Estimate RatioOf(const std::optional<double>& ratio,
                          const std::optional<Interval>& interval) {
  summary::Estimate estimate;
  estimate.value = SixDigits(ratio);
  if (interval) {
    estimate.low = SixDigits(interval->low);
    estimate.high = SixDigits(interval->high);
  }
  return estimate;
}

summary::Spread SpreadOf(const MeasuredEffect& measured) {
  const std::optional<analysis::VarianceSplit> split = analysis::SplitVariance(measured.log_ratios);
  if (!split) return {};
  return {SixDigits(split->within), SixDigits(split->between)};
}

// Of the effect in this run's conditions; nullopt where one process says nothing of others.
std::optional<Interval> OnThisBoard(const MeasuredEffect& measured, double alpha) {
  if (measured.processes < analysis::kMinProcesses) return std::nullopt;
  return measured.OnThisBoard().RatioAt(1 - alpha);
}

double TimeRatio(const std::vector<Pair>& pairs) {
  return std::exp(analysis::MediansOf(analysis::LogRatiosByProcess(pairs)).mean);
}

analysis::Evidence EvidenceOf(const RecordIndex& index, const Comparison& compared) {
  const Claim* claim = index.ClaimOf(*compared.arm);
  analysis::Evidence evidence = {.not_applicable = compared.not_applicable,
                                 .broken = compared.broken,
                                 .invalid = compared.invalid,
                                 .processes = compared.measured ? compared.measured->processes : 0,
                                 .alpha = compared.alpha,
                                 .gate = claim != nullptr ? claim->gate : Claim{}.gate,
                                 .neutral_delta = index.options().neutral_delta};
  if (compared.measured && compared.not_applicable.empty()) {
    evidence.effect = compared.measured->OnTheKind();
  }
  return evidence;
}

// nullopt for verdicts that are decided, or can't be.
std::optional<Enough> EnoughOf(const RecordIndex& index, const analysis::Judgement& judgement,
                               const Comparison& compared) {
  if (judgement.verdict != Verdict::kInconclusive || !judgement.interval || !compared.IsSound()) {
    return std::nullopt;
  }
  return EnoughToDecide(*compared.measured, compared.alpha, index.options().neutral_delta);
}

std::string WouldDecide(const Comparison& compared, const Enough& enough) {
  const auto of = [](const std::optional<int>& count, int most, const char* what) {
    return count ? absl::StrCat(*count, what) : absl::StrCat("not even ", most, what);
  };
  return absl::StrCat(
      "the same ratio ",
      compared.measured->boards_known
          ? absl::StrCat("on ", of(enough.boards, Enough::kMostBoards, " boards"), ", or ")
          : "",
      "in ", of(enough.processes, Enough::kMostProcesses, " processes on one"), ", would decide");
}

// Behind what the rules say: under which conditions, and what would decide.
std::string ReasonOf(const analysis::Judgement& judgement, const Comparison& compared,
                     const analysis::PowerCap& cap, const std::optional<Enough>& enough) {
  std::string reason = judgement.reason;
  const auto add = [&](const std::string& text) {
    absl::StrAppend(&reason, reason.empty() ? "" : "; ", text);
  };
  if (enough) add(WouldDecide(compared, *enough));
  if (compared.Estimand() == summary::kCycles) {
    add(absl::StrFormat("in SM cycles, at equal clocks (in time %.3fx)",
                        TimeRatio(compared.pairs)));
  }
  if (compared.IsAlone()) {
    add(absl::StrCat("each arm alone, ", cap.ClocksText()));
  } else if (cap.Any()) {
    add(cap.Text());
  } else if (cap.ClocksDiffer()) {
    add(cap.ClocksText());
  }
  return reason;
}

summary::Verdict VerdictOf(const RecordIndex& index, const Comparison& compared) {
  const Arm& arm = *compared.arm;
  const Claim& claim = *index.ClaimOf(arm);
  const bool in_family = compared.not_applicable.empty();
  const analysis::Judgement judgement = Judge(EvidenceOf(index, compared));
  std::set<int> processes;
  for (const Pair& pair : compared.pairs) processes.insert(pair.base.process);

  const bool sound = judgement.interval && compared.IsSound();
  const analysis::PowerCap cap = analysis::FindPowerCap(compared.pairs);
  const std::optional<Enough> enough = EnoughOf(index, judgement, compared);
  summary::Verdict verdict;
  verdict.toggle = arm.toggle;
  verdict.design = index.run().design;
  verdict.base = compared.base;
  verdict.candidate = compared.candidate;
  verdict.shape = compared.shape->name;
  verdict.n_pairs = std::ssize(compared.pairs);
  verdict.n_processes = std::ssize(processes);
  verdict.estimand = compared.Estimand();
  verdict.ratio = RatioOf(judgement.ratio, judgement.interval);
  if (in_family) verdict.adjusted_confidence = SixDigits(1 - compared.alpha);
  verdict.gate = claim.gate;
  verdict.verdict = VerdictName(judgement.verdict);
  verdict.reason = ReasonOf(judgement, compared, cap, enough);
  verdict.mde_ratio = SixDigits(judgement.mde_ratio);
  if (compared.measured) verdict.spread = SpreadOf(*compared.measured);
  if (judgement.interval) {
    const std::optional<Interval> on_board = OnThisBoard(*compared.measured, compared.alpha);
    verdict.this_board_low = SixDigits(on_board->low);
    verdict.this_board_high = SixDigits(on_board->high);
    const analysis::Effect within = compared.measured->Within();
    verdict.standard_error = SixDigits(within.error);
    verdict.error_df = SixDigits(within.df);
  }
  if (compared.Estimand() == summary::kCycles) {
    verdict.time_ratio = SixDigits(TimeRatio(compared.pairs));
  }
  if (enough) {
    verdict.boards_to_decide = enough->boards;
    verdict.processes_to_decide = enough->processes;
  }
  // Only sound evidence can test a prediction.
  if (const ClaimPrediction* predicted = compared.predicted; predicted != nullptr) {
    verdict.predicted_low = predicted->low;
    verdict.predicted_high = predicted->high;
    if (sound) {
      verdict.prediction_held =
          judgement.interval->low <= predicted->high && judgement.interval->high >= predicted->low;
    }
  }
  verdict.change = CodeChangeOf(index, index.ArmNamed(compared.base),
                                index.ArmNamed(compared.candidate), *compared.shape, claim);
  // Only where it is so: summaries of other records keep their bytes.
  if (cap.Any()) {
    verdict.power_capped = {.base_pairs = cap.base,
                            .candidate_pairs = cap.candidate,
                            .base_sm_mhz = SixDigits(cap.base_mhz),
                            .candidate_sm_mhz = SixDigits(cap.candidate_mhz)};
  }
  if (in_family) {
    verdict.errors = ErrorsOf(index, compared.base, compared.candidate, compared.shape->name);
    if (claim.keeps_bits) {
      verdict.same_errors =
          SameErrorsOf(index, compared.base, compared.candidate, compared.shape->name);
    }
  }
  return verdict;
}

summary::EnergyVerdict EnergyVerdictOf(const RecordIndex& index, const Comparison& compared) {
  const analysis::Judgement judgement = Judge(EvidenceOf(index, compared));
  summary::EnergyVerdict verdict;
  verdict.ratio = RatioOf(judgement.ratio, judgement.interval);
  if (compared.not_applicable.empty()) verdict.adjusted_confidence = SixDigits(1 - compared.alpha);
  verdict.verdict = VerdictName(judgement.verdict);
  verdict.reason = judgement.reason;
  if (const std::optional<Enough> enough = EnoughOf(index, judgement, compared)) {
    absl::StrAppend(&verdict.reason, "; ", WouldDecide(compared, *enough));
  }
  return verdict;
}

summary::Control ControlOf(const RecordIndex& index, const Comparison& compared) {
  const Arm& arm = *compared.arm;
  const MeasuredEffect& measured = *compared.measured;
  analysis::Evidence evidence = EvidenceOf(index, compared);
  const analysis::Judgement timing = Judge(evidence);
  if (arm.role == kRoleNull) {
    evidence.invalid =
        index.WhyCodeInvalid(index.ArmNamed(arm.base), arm, *compared.shape, arm.toggle);
  }
  const std::optional<Interval> on_board =
      OnThisBoard(measured, 1 - index.Confidence(compared.shape->name));
  summary::Control control;
  control.kind = arm.role;
  control.shape = compared.shape->name;
  control.candidate = arm.name;
  control.estimand = compared.Estimand();
  control.ratio = RatioOf(timing.ratio, on_board);
  control.holds_one = !on_board || (on_board->low <= 1 && on_board->high >= 1);
  control.timing_verdict = VerdictName(timing.verdict);
  control.verdict = VerdictName(Judge(evidence).verdict);
  control.false_verdict =
      timing.verdict != Verdict::kNeutral && timing.verdict != Verdict::kInconclusive;
  control.mde_ratio = SixDigits(timing.mde_ratio);
  control.spread = SpreadOf(measured);
  return control;
}

bool PredictsAt(const RecordIndex& index, const ClaimPrediction& predicted,
                const ShapeInfo& shape) {
  return predicted.problem == shape.name && index.run().cache == kCacheWarm &&
         index.run().created_utc >= predicted.since;
}

Comparison ComparisonOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape,
                        bool in_joules = false) {
  // A `without` arm lacks the toggle, and the arm it names has it.
  const bool adds = arm.role != kRoleWithout;
  Comparison compared = {.arm = &arm,
                         .family = absl::StrCat(IsControl(arm) ? arm.role : "", arm.toggle),
                         .base = adds ? arm.base : arm.name,
                         .candidate = adds ? arm.name : arm.base,
                         .shape = &shape};
  compared.in_joules = in_joules;
  compared.pairs = in_joules ? index.JoulePairs(compared.base, compared.candidate, shape.name)
                             : index.Pairs(compared.base, compared.candidate, shape.name);
  if (!compared.pairs.empty() && index.IsAlone()) {
    compared.measured = MeasuredAlone(compared.pairs, in_joules ? kAloneJoules : kAlone);
  } else if (!compared.pairs.empty()) {
    compared.measured = MeasuredOf(compared.pairs, index.ClocksOfSamples());
    compared.measured->boards_known = index.run().SubjectName() == kFirstSubject;
  }
  if (compared.measured)
    SetSides(compared.base, compared.candidate, shape.name, &*compared.measured);
  if (IsControl(arm)) return compared;
  compared.not_applicable = index.WhyNotApplicable(arm, shape);
  if (compared.not_applicable.empty() && !arm.base.empty()) {
    compared.not_applicable = index.WhyNotApplicable(index.ArmNamed(arm.base), shape);
    if (compared.not_applicable.empty()) {
      compared.not_applicable =
          index.WhyDoesNothing(index.ArmNamed(arm.base), arm, shape, arm.toggle);
    }
  }
  compared.broken = index.WhyBroken({compared.base, compared.candidate}, shape);
  compared.invalid = WhyFlawed(index.run());
  if (compared.invalid.empty()) {
    compared.invalid = index.WhyToggleInvalid(
        index.ArmNamed(compared.base), index.ArmNamed(compared.candidate), shape, arm.toggle);
  }
  if (compared.invalid.empty()) {
    compared.invalid = index.WhyStarved({compared.base, compared.candidate}, shape.name);
  }
  // What the power limit does to an arm alone belongs to the arm.
  if (compared.invalid.empty()) {
    compared.invalid = index.IsAlone() ? analysis::WhyThrottled(compared.pairs)
                                       : analysis::WhyConditionsInvalid(compared.pairs);
  }
  // A prediction speaks of one shape with a warm L2 and of its ladder's order, or of a technique
  // alone beyond the ladder.
  const Claim& claim = *index.ClaimOf(arm);
  if (PredictsAt(index, claim.predicted, shape) &&
      index.subject().IsPredictedFor(claim, index.run().design, compared.candidate)) {
    compared.predicted = &claim.predicted;
  }
  return compared;
}

// A family of tests is one for each of two questions. Members are all to which the claim applies,
// whether or not their samples turn out to be usable: what is counted must not depend on the
// outcome. A control on all shapes is a family of its own.
int64_t SetLevels(const RecordIndex& index, std::vector<Comparison>* comparisons) {
  std::map<std::pair<std::string, bool>, std::vector<Comparison*>> families;
  for (Comparison& compared : *comparisons) {
    if (!compared.not_applicable.empty()) continue;
    families[{compared.family, compared.in_joules}].push_back(&compared);
  }
  int64_t verdicts = 0;
  for (const auto& [family, members] : families) {
    std::vector<double> p_values;
    for (const Comparison* member : members) {
      // Over its share of alpha, the p-value of any look is one of the whole run.
      p_values.push_back(member->measured && member->IsSound()
                             ? std::min(1.0, member->measured->OnTheKind().DecisionPValue(
                                                 index.options().neutral_delta) /
                                                 index.AlphaShare(member->shape->name))
                             : 1);
    }
    const double alpha = analysis::FalseCoverageLevel(p_values, 1 - index.options().confidence);
    for (Comparison* member : members) {
      member->alpha = alpha * index.AlphaShare(member->shape->name);
      verdicts += IsControl(*member->arm) ? 0 : 1;
    }
  }
  return verdicts;
}

// Judged beside the verdicts, which must stay what they are: nothing of theirs depends on what else
// the arms say.
void AddDeclaredPairs(const RecordIndex& index, const std::vector<MeasuredEffect>& of_verdicts,
                      summary::Summary* out) {
  std::vector<DeclaredPair> pairs = index.subject().DeclaredPairs(index.run().arms);
  absl::c_stable_sort(pairs, [](const auto& a, const auto& b) { return a.family < b.family; });
  // Comparisons point at both.
  std::vector<Arm> steps;
  std::vector<MeasuredEffect> others = of_verdicts;
  for (const DeclaredPair& pair : pairs) {
    Arm step = index.ArmNamed(pair.candidate);
    step.role = kRoleStep;
    step.toggle = pair.toggle;
    step.base = pair.base;
    steps.push_back(std::move(step));
  }
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const ShapeInfo& shape : index.run().shapes) {
      Comparison compared = ComparisonOf(index, steps[i], shape);
      const ClaimPrediction& predicted = pairs[i].predicted;
      compared.family = pairs[i].family;
      compared.predicted = PredictsAt(index, predicted, shape) ? &predicted : nullptr;
      comparisons.push_back(std::move(compared));
    }
  }
  std::vector<MeasuredEffect*> measured;
  for (MeasuredEffect& effect : others) measured.push_back(&effect);
  for (Comparison& compared : comparisons) {
    if (compared.measured) measured.push_back(&*compared.measured);
  }
  ShareVariances(measured);
  SetLevels(index, &comparisons);
  for (const Comparison& compared : comparisons) {
    out->comparisons.push_back(VerdictOf(index, compared));
  }
}

}  // namespace

void AddVerdicts(const RecordIndex& index, summary::Summary* out) {
  std::vector<Comparison> comparisons;
  for (const Arm& arm : index.run().arms) {
    if (arm.role != kRoleStep && arm.role != kRoleWithout && !IsControl(arm)) continue;
    for (const ShapeInfo& shape : index.run().shapes) {
      comparisons.push_back(ComparisonOf(index, arm, shape));
      if (IsControl(arm) && !comparisons.back().measured) comparisons.pop_back();
      if (!index.IsAlone()) continue;
      comparisons.push_back(ComparisonOf(index, arm, shape, /*in_joules=*/true));
      if (!comparisons.back().measured) comparisons.pop_back();
    }
  }
  std::vector<MeasuredEffect*> measured;
  std::vector<MeasuredEffect> unshared;
  for (Comparison& compared : comparisons) {
    if (!compared.measured) continue;
    measured.push_back(&*compared.measured);
    unshared.push_back(*compared.measured);
  }
  ShareVariances(measured);
  AddDeclaredPairs(index, unshared, out);
  out->statistics.family_size = SetLevels(index, &comparisons);
  for (const Comparison& compared : comparisons) {
    if (!IsControl(*compared.arm)) {
      if (compared.in_joules) {
        out->verdicts.back().energy = EnergyVerdictOf(index, compared);  // behind that of its time
      } else {
        out->verdicts.push_back(VerdictOf(index, compared));
      }
      continue;
    }
    const summary::Control& control = out->controls.emplace_back(ControlOf(index, compared));
    ++out->controls_summary.trials;
    out->controls_summary.false_verdicts += control.false_verdict ? 1 : 0;
    out->controls_summary.intervals_holding_one += control.holds_one ? 1 : 0;
  }
}

}  // namespace warpledger::ablations
