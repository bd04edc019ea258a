// SPDX-License-Identifier: Apache-2.0
// The summary of a calibration: how often the ledger would be wrong. As summary.h.
//
//   absl::StatusOr<CalibrationSummary> summary =
//       ablations::FromJson<CalibrationSummary>(json);

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablations/plan/calibration.h"
#include "ablations/summary/parts.h"

namespace warpledger::summary {

inline constexpr int64_t kMostTrials = 1'000'000;

// A count of trials, its share of all that count, and that share's exact 95% interval.
struct Rate {
  int64_t count = 0;
  int64_t of = 0;
  std::optional<double> rate;  // empty: of none
  double low = 0;
  double high = 0;

  std::string WhyInvalid() const { return count <= of ? "" : "count is above of"; }

  void Visit(auto& f) {
    f("count", count, ablations::Within{0, kMostTrials});
    f("of", of, ablations::Within{0, kMostTrials});
    FIELDS(rate, low, high);
  }
};

using VerdictCounts = std::map<std::string, int64_t>;

// Identical arms: every verdict but NEUTRAL and INCONCLUSIVE is a false one. Trials that are
// INVALID stand in no rate.
struct AaTrials {
  int64_t trials = 0;
  Rate false_verdicts;
  Rate false_verdicts_in_family;
  int64_t family_size = 0;
  Rate families_with_false_verdict;
  Rate intervals_holding_truth;
  double largest_percent = 0;
  VerdictCounts verdicts;
  VerdictCounts verdicts_in_family;
  double half_width_percent_p50 = 0;
  double mde_percent_p50 = 0;
  double within_process_percent_p50 = 0;
  double between_process_percent_p50 = 0;
  int64_t invalid_trials = 0;

  void Visit(auto& f) {
    f("trials", trials, kCount);
    FIELDS(false_verdicts, false_verdicts_in_family, family_size, families_with_false_verdict,
           intervals_holding_truth, largest_percent, verdicts, verdicts_in_family,
           half_width_percent_p50, mde_percent_p50, within_process_percent_p50,
           between_process_percent_p50);
    f("invalid_trials", invalid_trials, kOnlyWhereSet, kCount);
  }
};

// A known delay behind the same kernel.
struct PlantedSize {
  double aimed_percent = 0;
  int64_t cycles = 0;
  double delay_us = 0;
  double by_delay_percent = 0;
  double achieved_percent = 0;
  double achieved_low = 0;
  double achieved_high = 0;
  int64_t trials = 0;
  Rate interval_below_one;
  Rate found;
  Rate found_in_family;
  Rate neutral;
  Rate intervals_holding_truth;
  VerdictCounts verdicts;
  VerdictCounts verdicts_in_family;
  double half_width_percent_p50 = 0;
  int64_t invalid_trials = 0;

  void Visit(auto& f) {
    FIELDS(aimed_percent, cycles, delay_us, by_delay_percent, achieved_percent, achieved_low,
           achieved_high);
    f("trials", trials, kCount);
    FIELDS(interval_below_one, found, found_in_family, neutral, intervals_holding_truth, verdicts,
           verdicts_in_family, half_width_percent_p50);
    f("invalid_trials", invalid_trials, kOnlyWhereSet, kCount);
  }
};

// Of all sizes together: whether the intervals cover what they should.
struct PlantedIntervals : Rate {
  double chance_of_as_few = 0;

  void Visit(auto& f) {
    Rate::Visit(f);
    f("chance_of_as_few", chance_of_as_few);
  }
};

// What a calibration is held to: shown when a one-sided 95% bound lies on the limit's right side,
// missed when the other bound lies beyond it.
struct Target {
  std::string name;
  double limit = 0;
  bool at_most = false;
  int64_t count = 0;
  int64_t of = 0;
  double bound = 0;
  std::string outcome;

  void Visit(auto& f) {
    FIELDS(name, limit, at_most, count, of, bound);
    f("outcome", outcome, OneOf("shown", "missed", "open"));
  }
};

// One pair of arms in one group of processes.
struct Trial {
  int64_t group = 0;
  std::string candidate;
  std::string base;
  Estimate ratio;
  double p_value = 0;
  std::string verdict;
  std::string verdict_in_family;

  void Visit(auto& f) {
    FIELDS(group, candidate, base);
    ratio.Visit(f);
    f("p_value", p_value);
    f("verdict", verdict, kIsVerdict);
    f("verdict_in_family", verdict_in_family, kIsVerdict);
  }
};

struct CalibrationStatistics {
  double confidence = 0;
  int64_t bootstrap_resamples = 0;
  uint64_t bootstrap_seed = 0;
  double neutral_delta = 0;
  std::string correction;
  int64_t trial_processes = 0;
  int64_t trial_blocks = 0;
  int64_t family_size = 0;

  DESCRIBE_FIELDS(confidence, bootstrap_resamples, bootstrap_seed, neutral_delta, correction,
                  trial_processes, trial_blocks, family_size)
};

struct CalibratedKernel {
  double p50_us = 0;
  int64_t launches_low = 0;  // in a replay
  int64_t launches_high = 0;
  double floor_us = 0;

  DESCRIBE_FIELDS(p50_us, launches_low, launches_high, floor_us)
};

// Of processes: one trial of each pair each.
struct Groups {
  int64_t planned = 0;
  int64_t used = 0;

  void Visit(auto& f) {
    f("planned", planned, kCount);
    f("used", used, kCount);
  }
};

struct CalibrationProvenance : ablations::CalibrationHeader, Conditions {
  // The header's rule is one of its arms, which are not in here.
  std::string WhyInvalid() const { return ""; }

  int64_t checks = 0;
  int64_t blocks_planned = 0;
  int64_t blocks_missing = 0;
  int64_t n_samples = 0;
  int64_t throttled_samples = 0;

  void Visit(auto& f) {
    AllBut all_but(f, {"shapes", "arms"});
    CalibrationHeader::Visit(all_but);
    f("checks", checks, kCount);
    f("blocks_planned", blocks_planned, kCount);
    f("blocks_missing", blocks_missing, kCount);
    f("n_samples", n_samples, kCount);
    f("throttled_samples", throttled_samples, kCount);
    Conditions::Visit(f);
  }
};

struct CalibrationSummary {
  std::string run_id;
  std::string gpu;  // slug
  std::string design;
  std::string family;
  CalibrationProvenance provenance;
  CalibrationStatistics statistics;
  std::vector<ablations::ShapeInfo> problems;  // one
  std::string variant;
  CalibratedKernel kernel;
  Groups groups;
  AaTrials aa;
  std::vector<PlantedSize> plants;
  PlantedIntervals planted_intervals;
  std::vector<Target> targets;
  std::vector<Trial> trials;

  std::string WhyInvalid() const { return problems.empty() ? "shapes must not be empty" : ""; }

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kSchemaVersion);
    FIELDS(run_id, gpu, design, family, provenance, statistics);
    f("shapes", problems);
    FIELDS(variant, kernel, groups, aa, plants, planted_intervals, targets, trials);
  }
};

}  // namespace warpledger::summary
