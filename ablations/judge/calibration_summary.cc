// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/measured.h"
#include "ablations/judge/record_index.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/known_subjects.h"
#include "ablations/stats/cluster_median.h"
#include "ablations/stats/distributions.h"
#include "ablations/stats/family.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/random.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/common/nvml.h"

namespace warpledger::ablations {
namespace {

using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Verdict;
using summary::CalibrationSummary;
using summary::PlantedSize;
using summary::Rate;
using summary::VerdictCounts;

// The targets that a calibration is held to.
constexpr double kMostFalse = 0.01;
constexpr double kLeastFound = 0.95;
constexpr double kPercentToFind = 2;

// One pair of arms in one group of processes.
struct Trial {
  int group = 0;
  const Arm* candidate = nullptr;
  analysis::Effect effect;  // on this board
  std::string invalid;
  Interval interval;  // likewise, at the unadjusted level
  double p_value = 1;
  Verdict alone = Verdict::kInconclusive;      // at the unadjusted level
  Verdict in_family = Verdict::kInconclusive;  // adjusted for a family
  std::optional<double> mde_ratio;
  std::optional<analysis::VarianceSplit> split;
};

// Conditions make a trial INVALID, alone and in a family alike. It says nothing, so it
// stands in no rate: it could not have been wrong.
bool IsValid(const Trial& trial) { return trial.alone != Verdict::kInvalid; }

bool IsFalse(Verdict verdict) {
  return verdict != Verdict::kNeutral && verdict != Verdict::kInconclusive &&
         verdict != Verdict::kInvalid;
}

// What the slow-down `log_ratio` is in percent.
double SlowdownPercent(double log_ratio) { return 100 * std::expm1(-log_ratio); }

// Of figures that are no optionals.
double Rounded(double value) { return SixDigits(value).value_or(std::nan("")); }

Rate RateFrom(int64_t count, int64_t of) {
  const Interval interval =
      analysis::ClopperPearson(static_cast<int>(count), static_cast<int>(of), 0.95);
  Rate rate = {.count = count,
               .of = of,
               .rate = std::nullopt,
               .low = Rounded(interval.low),
               .high = Rounded(interval.high)};
  if (of > 0) rate.rate = SixDigits(static_cast<double>(count) / static_cast<double>(of));
  return rate;
}

template <typename Predicate>
Rate RateOf(const std::vector<Trial>& trials, const Predicate& predicate) {
  const auto of = std::count_if(trials.begin(), trials.end(), IsValid);
  const auto count = std::count_if(trials.begin(), trials.end(), [&](const Trial& trial) {
    return IsValid(trial) && predicate(trial);
  });
  return RateFrom(count, of);
}

// How many trials stand in no rate.
int64_t CountInvalid(const std::vector<Trial>& trials) {
  return std::ssize(trials) - std::count_if(trials.begin(), trials.end(), IsValid);
}

VerdictCounts CountVerdicts(const std::vector<Trial>& trials, Verdict Trial::*verdict) {
  VerdictCounts counts;
  for (const Trial& trial : trials) ++counts[VerdictName(trial.*verdict)];
  return counts;
}

// Of the valid ones; where there are none, whose page says that nothing counts, of all.
template <typename Figure>
double MedianOver(const std::vector<Trial>& trials, const Figure& figure) {
  const bool any = std::any_of(trials.begin(), trials.end(), IsValid);
  std::vector<double> values;
  for (const Trial& trial : trials) {
    if (IsValid(trial) || !any) values.push_back(figure(trial));
  }
  return values.empty() ? std::nan("") : Rounded(analysis::Median(std::move(values)));
}

class CalibrationSummarizer {
 public:
  CalibrationSummarizer(const CalibrationRecord& record, const SummarizeOptions& options)
      : record_(record),
        run_(record.header.run),
        plan_(record.header.plan),
        options_(options),
        n_groups_(run_.processes / plan_.trial_processes) {}

  absl::StatusOr<CalibrationSummary> Run() {
    Index();
    if (groups_.empty()) {
      return absl::DataLossError(absl::StrCat(
          kBlocksFile, ": not one of ", n_groups_,
          " groups of processes is whole, so there is nothing to judge. The same `warpledger "
          "calibrate` measures what is missing."));
    }
    std::vector<Trial> aa = Trials(kRoleAa, "");
    JudgeFamilies(aa);
    CalibrationSummary out;
    out.run_id = run_.run_id;
    out.gpu = run_.gpu.slug;
    out.design = run_.design;
    out.family = run_.family;
    out.provenance = Provenance();
    out.statistics = {.confidence = options_.confidence,
                      .bootstrap_resamples = options_.bootstrap_resamples,
                      .bootstrap_seed = options_.bootstrap_seed,
                      .neutral_delta = options_.neutral_delta,
                      .correction = "Benjamini and Yekutieli's false coverage rate",
                      .trial_processes = plan_.trial_processes,
                      .trial_blocks = run_.blocks_per_process,
                      .family_size = plan_.family_size};
    out.problems = {run_.shapes[0]};
    if (const auto subject = SubjectOf(run_); subject.ok()) (*subject)->AddShownNames(out.problems);
    out.variant = plan_.variant;
    out.kernel = Kernel();
    out.groups = {.planned = n_groups_, .used = std::ssize(groups_)};
    out.aa = AaTrialsOf(aa);
    std::vector<Trial> all = aa;
    for (const Plant& plant : plan_.plants) {
      std::vector<Trial> trials =
          Trials(kRolePlanted, absl::StrCat("planted_", plant.percent, "%:"));
      out.plants.push_back(SizeOf(plant, trials));
      all.insert(all.end(), trials.begin(), trials.end());
    }
    out.planted_intervals = PlantedIntervals(out.plants);
    out.targets = Targets(out);
    for (const Trial& trial : all) {
      out.trials.push_back({.group = trial.group,
                            .candidate = trial.candidate->name,
                            .base = trial.candidate->base,
                            .ratio = summary::RatioOfLogs(trial.effect.log_ratio,
                                                          trial.interval.low, trial.interval.high),
                            .p_value = Rounded(trial.p_value),
                            .verdict = VerdictName(trial.alone),
                            .verdict_in_family = VerdictName(trial.in_family)});
    }
    return out;
  }

 private:
  void Index() {
    std::map<int, int> blocks_of;  // by process
    for (const CalibrationBlock& block : record_.blocks) ++blocks_of[block.process];
    std::map<int, int> whole_of;  // processes, by group
    for (const auto& [process, blocks] : blocks_of) {
      if (blocks == run_.blocks_per_process) ++whole_of[process / plan_.trial_processes];
    }
    for (const auto& [group, processes] : whole_of) {
      if (processes == plan_.trial_processes) groups_.insert(group);
    }
    bool clocks_of_samples = false;
    for (const CalibrationBlock& block : record_.blocks) {
      const int group = block.process / plan_.trial_processes;
      if (!groups_.contains(group)) continue;
      for (size_t arm = 0; arm < run_.arms.size(); ++arm) {
        const uint64_t reasons = block.throttle.empty() ? 0 : block.throttle[arm];
        timings_[{run_.arms[arm].name, group}].push_back(
            {.process = block.process,
             .block = block.block,
             .us = block.us[arm],
             .sm_mhz = block.sm_mhz[arm],
             .throttled = IsThrottledBesidesPowerCap(reasons),
             .power_capped = IsPowerCapped(reasons)});
        clocks_of_samples = clocks_of_samples || block.sm_mhz[arm] != std::round(block.sm_mhz[arm]);
      }
    }
    // A group stands for a run, so its comparisons share their variances.
    for (const int group : groups_) {
      std::vector<MeasuredEffect*> of_group;
      for (const Arm& arm : run_.arms) {
        if (arm.role != kRoleAa && arm.role != kRolePlanted) continue;
        MeasuredEffect& measured = measured_[{arm.name, group}];
        measured = MeasuredOf(Pairs(arm, group), clocks_of_samples);
        SetSides(arm.base, arm.name, run_.shapes.front().name, &measured);
        of_group.push_back(&measured);
      }
      ShareVariances(of_group);
    }
  }

  std::vector<analysis::Pair> Pairs(const Arm& arm, int group) const {
    return analysis::PairUp(Timings(arm.base, group), Timings(arm.name, group));
  }

  const std::vector<analysis::Timing>& Timings(const std::string& arm, int group) const {
    return timings_.at({arm, group});
  }

  analysis::Judgement JudgeAt(const Trial& trial, double alpha) const {
    return analysis::Judge({.invalid = trial.invalid,
                            .effect = trial.effect,
                            .processes = plan_.trial_processes,
                            .alpha = alpha,
                            .gate = Claim{}.gate,
                            .neutral_delta = options_.neutral_delta});
  }

  std::vector<Trial> Trials(const char* role, const std::string& prefix) const {
    const double alpha = 1 - options_.confidence;
    std::vector<Trial> trials;
    for (const int group : groups_) {
      for (const Arm& arm : run_.arms) {
        if (arm.role != role || arm.name.rfind(prefix, 0) != 0) continue;
        const MeasuredEffect& measured = measured_.at({arm.name, group});
        Trial trial;
        trial.group = group;
        trial.candidate = &arm;
        trial.effect = measured.OnThisBoard();
        trial.invalid = analysis::WhyConditionsInvalid(Pairs(arm, group));
        trial.interval = trial.effect.At(options_.confidence);
        trial.p_value = trial.effect.PValue(0);
        trial.split = analysis::SplitVariance(measured.log_ratios);
        const analysis::Judgement judgement = JudgeAt(trial, alpha);
        trial.alone = judgement.verdict;
        trial.mde_ratio = judgement.mde_ratio;
        // The strictest level that a family of that size can have.
        trial.in_family = JudgeAt(trial, alpha / plan_.family_size).verdict;
        trials.push_back(trial);
      }
    }
    return trials;
  }

  // Of the A/A trials, which stand group after group; the last of a group takes the rest.
  std::vector<absl::Span<Trial>> Families(std::vector<Trial>& trials) const {
    const auto most = static_cast<size_t>(plan_.aa_family);
    std::vector<absl::Span<Trial>> families;
    for (size_t begin = 0; begin < trials.size(); begin += families.back().size()) {
      size_t size = 1;
      while (size < most && begin + size < trials.size() &&
             trials[begin + size].group == trials[begin].group) {
        ++size;
      }
      families.push_back(absl::MakeSpan(trials).subspan(begin, size));
    }
    return families;
  }

  // At the levels that `judge` gives to the verdicts of a claim.
  void JudgeFamilies(std::vector<Trial>& trials) const {
    for (const absl::Span<Trial> members : Families(trials)) {
      std::vector<double> p_values;
      for (const Trial& trial : members) {
        p_values.push_back(trial.effect.DecisionPValue(options_.neutral_delta));
      }
      const double alpha = analysis::FalseCoverageLevel(p_values, 1 - options_.confidence);
      for (Trial& trial : members) trial.in_family = JudgeAt(trial, alpha).verdict;
    }
  }

  summary::AaTrials AaTrialsOf(std::vector<Trial>& trials) const {
    std::vector<absl::Span<Trial>> families = Families(trials);
    // With fewer trials than it is said to have, a family would be wrong less often.
    std::erase_if(families, [](const auto& family) {
      return !std::all_of(family.begin(), family.end(), IsValid);
    });
    const auto bad = std::count_if(families.begin(), families.end(), [](const auto& family) {
      return std::any_of(family.begin(), family.end(),
                         [](const Trial& trial) { return IsFalse(trial.in_family); });
    });
    double largest = 0;
    for (const Trial& trial : trials) {
      if (IsValid(trial))
        largest = std::max(largest, std::fabs(SlowdownPercent(trial.effect.log_ratio)));
    }
    summary::AaTrials out;
    out.trials = std::ssize(trials);
    out.false_verdicts = RateOf(trials, [](const Trial& t) { return IsFalse(t.alone); });
    out.false_verdicts_in_family =
        RateOf(trials, [](const Trial& t) { return IsFalse(t.in_family); });
    out.family_size = plan_.aa_family;
    out.families_with_false_verdict = RateFrom(bad, std::ssize(families));
    out.intervals_holding_truth =
        RateOf(trials, [](const Trial& t) { return t.interval.low <= 0 && t.interval.high >= 0; });
    out.largest_percent = Rounded(largest);
    out.verdicts = CountVerdicts(trials, &Trial::alone);
    out.verdicts_in_family = CountVerdicts(trials, &Trial::in_family);
    out.half_width_percent_p50 = HalfWidth(trials);
    out.mde_percent_p50 =
        MedianOver(trials, [](const Trial& t) { return 100 * (t.mde_ratio.value_or(1) - 1); });
    out.within_process_percent_p50 =
        MedianOver(trials, [](const Trial& t) { return t.split ? 100 * t.split->within : 0; });
    out.between_process_percent_p50 =
        MedianOver(trials, [](const Trial& t) { return t.split ? 100 * t.split->between : 0; });
    out.invalid_trials = CountInvalid(trials);
    return out;
  }

  static double HalfWidth(const std::vector<Trial>& trials) {
    return MedianOver(
        trials, [](const Trial& t) { return 100 * 0.5 * (t.interval.high - t.interval.low); });
  }

  // Of all pairs of one size together, over all processes: what the plants really
  // were, some ten times as sharp as one trial sees it.
  ClusterMedian Achieved(const std::vector<Trial>& trials) const {
    std::map<int, std::vector<double>> by_process;
    for (const Trial& trial : trials) {
      const Arm& arm = *trial.candidate;
      for (const analysis::Pair& pair : Pairs(arm, trial.group)) {
        by_process[pair.base.process].push_back(std::log(pair.base.us / pair.candidate.us));
      }
    }
    std::vector<std::vector<double>> values;
    for (auto& [process, list] : by_process) values.push_back(std::move(list));
    const std::string& name = trials[0].candidate->name;
    return ClusterMedian(values,
                         {.resamples = options_.bootstrap_resamples,
                          .seed = analysis::StreamSeed(
                              options_.bootstrap_seed,
                              absl::StrCat("trial:", name.substr(0, name.find(':')), ":", -1))});
  }

  double MedianUs(const std::string& arm) const {
    std::vector<double> us;
    for (const int group : groups_) {
      for (const analysis::Timing& timing : Timings(arm, group)) us.push_back(timing.us);
    }
    return analysis::Median(std::move(us));
  }

  // Of every null arm, which are all the same.
  double NullUs() const {
    std::vector<double> us;
    for (const Arm& arm : run_.arms) {
      if (arm.role != kRoleBase && arm.role != kRoleAa) continue;
      for (const int group : groups_) {
        for (const analysis::Timing& timing : Timings(arm.name, group)) us.push_back(timing.us);
      }
    }
    return analysis::Median(std::move(us));
  }

  summary::CalibratedKernel Kernel() const {
    int low = record_.blocks[0].launches[0];
    int high = low;
    for (const CalibrationBlock& block : record_.blocks) {
      for (size_t arm = 0; arm < run_.arms.size(); ++arm) {
        const std::string& role = run_.arms[arm].role;
        if (role != kRoleBase && role != kRoleAa && role != kRolePlanted) continue;
        low = std::min(low, block.launches[arm]);
        high = std::max(high, block.launches[arm]);
      }
    }
    return {.p50_us = Rounded(NullUs()),
            .launches_low = low,
            .launches_high = high,
            .floor_us = Rounded(MedianUs(run_.arms.back().name))};
  }

  PlantedSize SizeOf(const Plant& plant, const std::vector<Trial>& trials) const {
    const ClusterMedian achieved = Achieved(trials);
    const double truth = achieved.MeanOfMedians();
    const Interval interval = achieved.Envelope(options_.confidence);
    const double delay_us = MedianUs(absl::StrCat("delay_", plant.percent, "%"));
    const double replay_us = NullUs() * record_.header.pilot.launches;
    PlantedSize out;
    out.aimed_percent = plant.percent;
    out.cycles = plant.cycles;
    out.delay_us = Rounded(delay_us);
    out.by_delay_percent = Rounded(100 * delay_us / replay_us);
    out.achieved_percent = Rounded(SlowdownPercent(truth));
    out.achieved_low = Rounded(SlowdownPercent(interval.high));
    out.achieved_high = Rounded(SlowdownPercent(interval.low));
    out.trials = std::ssize(trials);
    out.interval_below_one = RateOf(trials, [](const Trial& t) { return t.interval.high < 0; });
    out.found = RateOf(trials, [](const Trial& t) { return t.alone == Verdict::kRegression; });
    out.found_in_family =
        RateOf(trials, [](const Trial& t) { return t.in_family == Verdict::kRegression; });
    out.neutral = RateOf(trials, [](const Trial& t) { return t.alone == Verdict::kNeutral; });
    out.intervals_holding_truth = RateOf(trials, [truth](const Trial& t) {
      return t.interval.low <= truth && t.interval.high >= truth;
    });
    out.verdicts = CountVerdicts(trials, &Trial::alone);
    out.verdicts_in_family = CountVerdicts(trials, &Trial::in_family);
    out.half_width_percent_p50 = HalfWidth(trials);
    out.invalid_trials = CountInvalid(trials);
    return out;
  }

  // Of all sizes together: whether the intervals cover what they should.
  summary::PlantedIntervals PlantedIntervals(const std::vector<PlantedSize>& plants) const {
    int holding = 0;
    int trials = 0;
    for (const PlantedSize& plant : plants) {
      holding += static_cast<int>(plant.intervals_holding_truth.count);
      trials += static_cast<int>(plant.intervals_holding_truth.of);
    }
    summary::PlantedIntervals out;
    static_cast<Rate&>(out) = RateFrom(holding, trials);
    out.chance_of_as_few = Rounded(analysis::BinomialAtMost(holding, trials, options_.confidence));
    return out;
  }

  // A target is shown when a one-sided 95% bound lies on its side of the limit, and
  // missed when the other bound lies beyond it.
  static summary::Target Target(const char* name, const Rate& rate, double limit, bool at_most) {
    const Interval bounds =
        analysis::ClopperPearson(static_cast<int>(rate.count), static_cast<int>(rate.of), 0.90);
    const bool shown = at_most ? bounds.high <= limit : bounds.low >= limit;
    const bool missed = at_most ? bounds.low > limit : bounds.high < limit;
    return {.name = name,
            .limit = limit,
            .at_most = at_most,
            .count = rate.count,
            .of = rate.of,
            .bound = Rounded(at_most ? bounds.high : bounds.low),
            .outcome = shown    ? "shown"
                       : missed ? "missed"
                                : "open"};
  }

  static std::vector<summary::Target> Targets(const CalibrationSummary& calibration) {
    const summary::AaTrials& aa = calibration.aa;
    std::vector<summary::Target> targets = {
        Target("aa_verdict", aa.false_verdicts, kMostFalse, true),
        Target("aa_verdict_in_family", aa.false_verdicts_in_family, kMostFalse, true),
        Target("aa_family", aa.families_with_false_verdict, kMostFalse, true)};
    for (const PlantedSize& plant : calibration.plants) {
      if (plant.aimed_percent != kPercentToFind) continue;
      targets.push_back(Target("planted_found", plant.found, kLeastFound, false));
      targets.push_back(
          Target("planted_found_in_family", plant.found_in_family, kLeastFound, false));
    }
    return targets;
  }

  summary::CalibrationProvenance Provenance() const {
    summary::CalibrationProvenance provenance;
    static_cast<CalibrationHeader&>(provenance) = record_.header;
    std::vector<double> sm_mhz;
    std::vector<double> temp_c;
    std::vector<double> power_w;
    for (const CalibrationBlock& block : record_.blocks) {
      for (const double mhz : block.sm_mhz) {
        if (mhz > 0) sm_mhz.push_back(mhz);
      }
      for (const uint64_t mask : block.throttle) {
        provenance.throttled_samples += IsThrottled(mask) ? 1 : 0;
      }
      if (block.temp_c > 0) temp_c.push_back(block.temp_c);
      if (block.power_w > 0) power_w.push_back(block.power_w);
    }
    provenance.checks = record_.checks;
    provenance.blocks_planned = int64_t{run_.processes} * run_.blocks_per_process;
    provenance.blocks_missing = provenance.blocks_planned - std::ssize(record_.blocks);
    provenance.n_samples = std::ssize(record_.blocks) * std::ssize(run_.arms);
    provenance.sm_mhz_p50 = MedianOf(std::move(sm_mhz));
    provenance.temp_c_p50 = MedianOf(std::move(temp_c));
    provenance.power_w_p50 = MedianOf(std::move(power_w));
    return provenance;
  }

  const CalibrationRecord& record_;
  const RunInfo& run_;
  const CalibrationPlan& plan_;
  const SummarizeOptions options_;
  const int n_groups_;
  std::set<int> groups_;  // those that are whole
  std::map<std::pair<std::string, int>, std::vector<analysis::Timing>> timings_;
  std::map<std::pair<std::string, int>, MeasuredEffect> measured_;
};

}  // namespace

absl::StatusOr<CalibrationSummary> SummarizeCalibration(const CalibrationRecord& record,
                                                        const SummarizeOptions& options) {
  return CalibrationSummarizer(record, options).Run();
}

}  // namespace warpledger::ablations
