// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/stopping.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ablations/stats/cluster_median.h"
#include "ablations/stats/log_ratios.h"
#include "ablations/stats/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

constexpr double kConfidence = 0.95;
constexpr int kResamples = 4000;
constexpr uint64_t kSeed = 20240601;

using TimingsByArm = std::map<std::string, std::vector<analysis::Timing>>;

// How many processes, from the first on, have all their blocks of our arms.
int CompleteProcesses(const RunInfo& run, const std::vector<Sample>& samples,
                      const std::string& shape) {
  std::map<int, std::set<int>> blocks;
  for (const Sample& sample : samples) {
    if (sample.shape == shape && sample.arm.rfind("peer:", 0) != 0) {
      blocks[sample.process].insert(sample.block);
    }
  }
  int complete = 0;
  while (complete < run.processes &&
         static_cast<int>(blocks[complete].size()) >= run.blocks_per_process) {
    ++complete;
  }
  return complete;
}

// The widest half-width of the claims on `shape`, relative to the ratio; nullopt
// where no claim has pairs.
std::optional<double> WorstHalfWidth(const RunInfo& run, const TimingsByArm& timings,
                                     const std::string& shape, double confidence) {
  std::optional<double> worst;
  const auto find = [&](const std::string& arm) {
    const auto found = timings.find(arm);
    return found == timings.end() ? std::vector<analysis::Timing>{} : found->second;
  };
  for (const Arm& arm : run.arms) {
    if (arm.role != kRoleStep && arm.role != kRoleWithout) continue;
    const std::vector<analysis::Pair> pairs = analysis::PairUp(find(arm.base), find(arm.name));
    if (pairs.empty()) continue;
    const analysis::ClusterMedian log_ratio(
        analysis::LogRatiosByProcess(pairs),
        {.resamples = kResamples,
         .seed = analysis::StreamSeed(kSeed, absl::StrCat("stop:", arm.name, ":", shape))});
    const analysis::Interval interval = log_ratio.Envelope(confidence);
    const double half_width = (std::exp(interval.high - log_ratio.MeanOfMedians()) -
                               std::exp(interval.low - log_ratio.MeanOfMedians())) /
                              2;
    worst = std::max(worst.value_or(0), half_width);
  }
  return worst;
}

}  // namespace

std::vector<int> PlannedLooks(int processes) {
  std::vector<int> looks;
  for (int look = kFirstLook; look < processes - 1; look += 2) looks.push_back(look);
  looks.push_back(processes);
  return looks;
}

std::vector<double> AlphaShares(int looks) {
  if (looks <= 1) return {1.0};
  std::vector<double> shares(static_cast<size_t>(looks), 0.5 / (looks - 1));
  shares.back() = 0.5;
  return shares;
}

absl::StatusOr<std::optional<StoppingRule>> ParseStopping(std::string_view text, int processes) {
  if (text == "off") return std::optional<StoppingRule>();
  absl::string_view number = Text(text);
  double percent = 0;
  if (!absl::ConsumePrefix(&number, "ci:") || !absl::ConsumeSuffix(&number, "%") ||
      !absl::SimpleAtod(number, &percent) || !(percent > 0 && percent < 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stop=", Text(text), ": it is off, or ci:1% for a goal of 1%"));
  }
  StoppingRule rule;
  rule.half_width = percent / 100;
  rule.confidence = kConfidence;
  rule.looks = PlannedLooks(processes);
  rule.alpha_shares = AlphaShares(static_cast<int>(rule.looks.size()));
  if (rule.looks.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stop=", Text(text), " needs --processes=", kFirstLook + 2,
                     " or more: the first look comes after ", kFirstLook));
  }
  return std::optional<StoppingRule>(std::move(rule));
}

StoppingState StateOf(const RunInfo& run, const std::vector<Sample>& samples,
                      const std::string& shape) {
  StoppingState state;
  if (!run.stopping) {
    state.processes = run.processes;
    return state;
  }
  const StoppingRule& rule = *run.stopping;
  state.alpha_share = rule.alpha_shares.front();
  const int complete = CompleteProcesses(run, samples, shape);
  for (size_t look = 0; look < rule.looks.size() && rule.looks[look] <= complete; ++look) {
    state.look = static_cast<int>(look);
    state.processes = rule.looks[look];
    state.alpha_share = rule.alpha_shares[look];
    TimingsByArm timings;
    for (const Sample& sample : samples) {
      if (sample.shape != shape || sample.process >= state.processes) continue;
      timings[sample.arm].push_back(
          {.process = sample.process, .block = sample.block, .us = sample.us});
    }
    const std::optional<double> worst =
        WorstHalfWidth(run, timings, shape, 1 - (1 - rule.confidence) * state.alpha_share);
    state.worst_half_width = worst.value_or(0);
    if (look + 1 == rule.looks.size()) break;
    if (worst && *worst <= rule.half_width) {
      state.stopped = true;
      break;
    }
  }
  return state;
}

}  // namespace warpledger::ablations
