// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ablations/base/json_text.h"
#include "ablations/stats/medians.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

using analysis::Effect;
using analysis::Pair;
using analysis::VarianceEstimate;

namespace {

void SetLogRatios(std::vector<std::vector<double>> log_ratios, MeasuredEffect* measured) {
  measured->log_ratios = std::move(log_ratios);
  const analysis::ProcessMedians medians = analysis::MediansOf(measured->log_ratios);
  measured->log_ratio = medians.mean;
  measured->processes = medians.processes;
  measured->variance = measured->own_variance = {medians.variance, medians.processes - 1.0};
}

// Numbers for names, each one of its own for what has none.
class Numbers {
 public:
  int Of(const std::string& name) {
    const int next = next_++;
    return name.empty() ? next : numbers_.try_emplace(name, next).first->second;
  }

 private:
  int next_ = 0;
  std::map<std::string, int> numbers_;
};

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

MeasuredEffect MeasuredEffect::WithProcesses(int count) const {
  MeasuredEffect more = {.regime = regime,
                         .base = base,
                         .candidate = candidate,
                         .log_ratios = {},
                         .log_ratio = log_ratio,
                         .processes = count,
                         .variance = {},
                         .own_variance = {own_variance.variance, count - 1.0},
                         .shared = shared,
                         .boards_known = boards_known};
  more.shared.all_df += count - processes;
  more.variance = analysis::Moderate(more.own_variance, more.shared);
  return more;
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

void SetSides(const std::string& base, const std::string& candidate, const std::string& shape,
              MeasuredEffect* measured) {
  measured->base = absl::StrCat(base, " ", shape);
  measured->candidate = absl::StrCat(candidate, " ", shape);
}

void ShareVariances(absl::Span<MeasuredEffect* const> of_record) {
  std::set<const Regime*> regimes;
  for (const MeasuredEffect* measured : of_record) regimes.insert(measured->regime);
  for (const Regime* regime : regimes) {
    std::vector<MeasuredEffect*> members;
    std::vector<VarianceEstimate> variances;
    std::vector<analysis::Sides> sides;
    Numbers numbers;
    for (MeasuredEffect* measured : of_record) {
      if (measured->regime != regime || measured->processes < analysis::kMinProcesses) {
        continue;
      }
      members.push_back(measured);
      variances.push_back(measured->own_variance);
      const int base = numbers.Of(measured->base);  // before the candidate's
      sides.emplace_back(base, numbers.Of(measured->candidate));
    }
    const analysis::VariancePrior shared = analysis::PriorOf(variances, sides);
    for (MeasuredEffect* member : members) {
      member->shared = shared;
      member->variance = analysis::Moderate(member->own_variance, shared);
    }
  }
}

std::optional<int> BoardsToDecide(std::vector<analysis::BoardEffect> boards,
                                  const analysis::SpreadPrior& spread, double alpha,
                                  double neutral_delta) {
  const size_t turn = boards.size();
  while (boards.size() < Enough::kMostBoards) {
    boards.push_back(boards[boards.size() - turn]);
    const analysis::PooledEffect pooled = analysis::PoolEffects(boards, spread);
    if (pooled.Further().DecisionPValue(neutral_delta) <= alpha) {
      return static_cast<int>(boards.size());
    }
  }
  return std::nullopt;
}

Enough EnoughToDecide(const MeasuredEffect& measured, double alpha, double neutral_delta) {
  Enough enough;
  if (measured.processes < analysis::kMinProcesses) return enough;
  if (measured.boards_known) {
    enough.boards = BoardsToDecide({{measured.log_ratio, measured.Within().error}},
                                   measured.regime->spread, alpha, neutral_delta);
  }
  for (int n = measured.processes + 1; n <= Enough::kMostProcesses && !enough.processes; ++n) {
    const Effect effect = measured.WithProcesses(n).OnTheKind();
    if (effect.DecisionPValue(neutral_delta) <= alpha) enough.processes = n;
  }
  return enough;
}

}  // namespace warpledger::ablations
