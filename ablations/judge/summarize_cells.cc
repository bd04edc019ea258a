// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/measured.h"
#include "ablations/judge/summarize_parts.h"
#include "ablations/stats/verdict.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

using analysis::ClusterMedian;
using analysis::Interval;
using analysis::Pair;
using analysis::Timing;

std::string Label(const RecordIndex& index, const Arm& arm) {
  if (arm.role == kRoleAa) return "Same kernel again (A/A control)";
  if (const Claim* claim = index.ClaimOf(arm)) {
    return absl::StrCat(arm.role == kRoleWithout ? "Without: " : "", std::string(claim->label));
  }
  const std::string label = index.subject().LabelOf(arm.config);
  return label.empty() ? arm.name : label;
}

std::optional<summary::Estimate> SpeedupOverFirst(const RecordIndex& index, const Arm& arm,
                                                  const ShapeInfo& shape) {
  if (index.first() == nullptr) return std::nullopt;
  // Nothing that fails is ranked, nor anything against it.
  if (!index.Checks(arm.name, shape.name).correct().value_or(false)) return std::nullopt;
  if (!index.Checks(index.first()->name, shape.name).correct().value_or(false)) return std::nullopt;
  if (&arm == index.first()) {
    if (index.Timings(arm.name, shape.name).empty()) return std::nullopt;
    return summary::Estimate{1, 1, 1};
  }
  const std::vector<Pair> pairs = index.Pairs(index.first()->name, arm.name, shape.name);
  if (pairs.empty()) return std::nullopt;
  const ClusterMedian log_ratio(analysis::LogRatiosByProcess(pairs),
                                index.Bootstrap("over_first", arm.name, shape.name));
  const Interval interval = log_ratio.Envelope(index.Confidence(shape.name));
  return summary::RatioOfLogs(log_ratio.MeanOfMedians(), interval.low, interval.high);
}

// Both sides alone, and both right.
std::vector<summary::OverPeer> OverPeersOf(const RecordIndex& index, const Arm& arm,
                                           const ShapeInfo& shape,
                                           const std::vector<PeerRatio>& ratios) {
  std::vector<summary::OverPeer> over;
  for (const PeerRatio& ratio : ratios) {
    if (ratio.arm != arm.name || ratio.shape != shape.name) continue;
    const auto estimate = [&](const MeasuredEffect& measured) {
      summary::Estimate out = {.value = SixDigits(std::exp(measured.log_ratio)),
                               .low = std::nullopt,
                               .high = std::nullopt};
      if (measured.processes >= analysis::kMinProcesses) {
        const Interval interval = measured.OnThisBoard().RatioAt(index.options().confidence);
        out.low = SixDigits(interval.low);
        out.high = SixDigits(interval.high);
      }
      return out;
    };
    summary::OverPeer& one = over.emplace_back();
    one.peer = ratio.peer;
    one.time = estimate(ratio.time);
    if (ratio.joules) one.joules = estimate(*ratio.joules);
  }
  return over;
}

}  // namespace

std::vector<PeerRatio> PeerRatiosOf(const RecordIndex& index) {
  std::vector<PeerRatio> ratios;
  if (!index.IsAlone()) return ratios;
  for (const auto& [key, timings] : index.timings()) {
    const auto& [peer, shape] = key;
    if (peer.rfind(kPeerPrefix, 0) != 0) continue;
    for (const Arm& arm : index.run().arms) {
      if (!IsMeasuredHere(arm) || !index.Checks(arm.name, shape).correct().value_or(false)) {
        continue;
      }
      const std::vector<Pair> pairs = index.Pairs(peer, arm.name, shape);
      if (pairs.empty() || !index.WhyStarved({peer, arm.name}, shape).empty()) continue;
      PeerRatio& ratio = ratios.emplace_back();
      ratio.peer = peer;
      ratio.arm = arm.name;
      ratio.shape = shape;
      ratio.time = MeasuredAlone(pairs, kAlone);
      SetSides(peer, arm.name, shape, &ratio.time);
      const std::vector<Pair> joules = index.JoulePairs(peer, arm.name, shape);
      if (joules.empty()) continue;
      ratio.joules = MeasuredAlone(joules, kAloneJoules);
      SetSides(peer, arm.name, shape, &*ratio.joules);
    }
  }
  std::vector<MeasuredEffect*> measured;
  for (PeerRatio& ratio : ratios) {
    measured.push_back(&ratio.time);
    if (ratio.joules) measured.push_back(&*ratio.joules);
  }
  ShareVariances(measured);
  return ratios;
}

summary::Cell CellOf(const RecordIndex& index, const Arm& arm, const ShapeInfo& shape,
                     const std::vector<PeerRatio>& ratios) {
  const CheckFacts checks = index.Checks(arm.name, shape.name);
  summary::Cell cell;
  static_cast<summary::Times&>(cell) = index.TimesOf(arm.name, shape.name);
  static_cast<summary::Resources&>(cell) = ResourcesOf(index, arm, shape);
  cell.variant = arm.name;
  cell.config = arm.config;
  cell.kv_bits = index.subject().KvBits(arm.config);
  cell.role = arm.role;
  cell.toggle = arm.toggle;
  cell.label = Label(index, arm);
  cell.shape = shape.name;
  cell.correct = checks.correct();
  if (checks.worst != nullptr) {
    cell.max_err = SixDigits(checks.worst->max_err);
    cell.max_err_rule = SixDigits(checks.worst->max_err_limit);
  }
  cell.n_checks = checks.count;
  if (const double us = cell.p50_us.value.value_or(0); us > 0) {
    cell.tflops = SixDigits(shape.flops() / us * 1e-6);
  }
  cell.speedup_over_first = SpeedupOverFirst(index, arm, shape);
  if (std::string code = index.CodeHash(arm, shape); !code.empty()) {
    cell.code_sha256 = std::move(code);
  }
  std::vector<double> sm_mhz;
  for (const Timing& timing : index.Timings(arm.name, shape.name)) {
    if (timing.sm_mhz > 0) sm_mhz.push_back(timing.sm_mhz);
  }
  cell.sm_mhz_p50 = MedianOf(std::move(sm_mhz));
  cell.reason = checks.WhyBroken();
  cell.alone = index.AloneOf(arm.name, shape.name);
  cell.over_peers = OverPeersOf(index, arm, shape, ratios);
  return cell;
}

}  // namespace warpledger::ablations
