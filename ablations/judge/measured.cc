// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "ablations/base/json_text.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/verdict.h"

namespace warpledger::ablations {

using analysis::Effect;
using analysis::Pair;
using analysis::VarianceEstimate;

namespace {

void SetLogRatios(std::vector<std::vector<double>> log_ratios, MeasuredEffect* measured) {
  measured->log_ratios = std::move(log_ratios);
  const analysis::ProcessMedians medians = analysis::MediansOf(measured->log_ratios);
  measured->log_ratio = medians.median;
  measured->processes = medians.processes;
  measured->variance = {medians.variance, medians.processes - 1.0};
}

}  // namespace

const Regime& RegimeOf(bool capped, bool in_cycles) {
  if (!capped) return kNotCapped;
  return in_cycles ? kCapped : kCappedTime;
}

summary::BoardSpread SpreadOf(const char* regime, const analysis::SpreadPrior& spread) {
  return {regime, *SixDigits(spread.floor), *SixDigits(spread.scale), *SixDigits(spread.df),
          *SixDigits(spread.slope)};
}

Effect OnBoard(const Regime& regime, const Effect& measured) {
  return {measured.log_ratio, std::hypot(measured.error, regime.placement), measured.df};
}

Effect MeasuredEffect::Within() const {
  if (processes < analysis::kMinProcesses) {
    return {log_ratio, std::numeric_limits<double>::infinity(), 1};
  }
  return {log_ratio, std::sqrt(variance.variance / processes), variance.df};
}

Effect MeasuredEffect::OnTheKind() const {
  if (processes < analysis::kMinProcesses) return Within();
  if (!boards_known) return OnThisBoard();
  return analysis::PoolEffects({{log_ratio, Within().error}}, regime->spread).Further();
}

MeasuredEffect MeasuredOf(absl::Span<const Pair> pairs, bool clocks_of_samples) {
  const analysis::PowerCap cap = analysis::FindPowerCap(pairs);
  const bool in_cycles =
      clocks_of_samples && std::all_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
        return pair.base.sm_mhz > 0 && pair.candidate.sm_mhz > 0;
      });
  MeasuredEffect measured;
  measured.regime = &RegimeOf(cap.base + cap.candidate > cap.pairs, in_cycles);
  SetLogRatios(measured.regime == &kCapped ? analysis::LogCycleRatiosByProcess(pairs)
                                           : analysis::LogRatiosByProcess(pairs),
               &measured);
  return measured;
}

MeasuredEffect MeasuredAlone(absl::Span<const Pair> pairs, const Regime& regime) {
  MeasuredEffect measured;
  measured.regime = &regime;
  measured.boards_known = false;
  SetLogRatios(analysis::LogRatiosByProcess(pairs), &measured);
  return measured;
}

void ShareVariances(absl::Span<MeasuredEffect* const> of_record) {
  std::set<const Regime*> regimes;
  for (const MeasuredEffect* measured : of_record) regimes.insert(measured->regime);
  for (const Regime* regime : regimes) {
    std::vector<MeasuredEffect*> members;
    std::vector<VarianceEstimate> variances;
    for (MeasuredEffect* measured : of_record) {
      if (measured->regime != regime || measured->processes < analysis::kMinProcesses) {
        continue;
      }
      members.push_back(measured);
      variances.push_back(measured->variance);
    }
    const std::vector<VarianceEstimate> moderated = analysis::Moderated(variances);
    for (size_t i = 0; i < members.size(); ++i) members[i]->variance = moderated[i];
  }
}

Enough EnoughToDecide(const MeasuredEffect& measured, double alpha, double neutral_delta) {
  Enough enough;
  if (measured.processes < analysis::kMinProcesses) return enough;
  const Effect within = measured.Within();
  // As MeasuredEffect has it for one board.
  const auto decides = [&](double error, int boards) {
    Effect effect = OnBoard(*measured.regime, {within.log_ratio, error, within.df});
    if (measured.boards_known) {
      const analysis::SpreadPrior& spread = measured.regime->spread;
      effect.error = std::sqrt(spread.Variance(error, within.log_ratio) * (1 + 1.0 / boards));
      effect.df = spread.df + boards - 1;
    }
    return effect.DecisionPValue(neutral_delta) <= alpha;
  };
  const int most_boards = measured.boards_known ? Enough::kMostBoards : 1;
  for (int boards = 2; boards <= most_boards && !enough.boards; ++boards) {
    if (decides(within.error, boards)) enough.boards = boards;
  }
  for (int n = measured.processes + 1; n <= Enough::kMostProcesses && !enough.processes; ++n) {
    const double share = static_cast<double>(measured.processes) / n;
    if (decides(within.error * std::sqrt(share), 1)) enough.processes = n;
  }
  return enough;
}

}  // namespace warpledger::ablations
