// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/alone.h"

#include <map>

#include "absl/functional/function_ref.h"
#include "reports/model/derived/beside_peers.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

// The variant of the least geometric mean over `contests`, of those that count on all of them;
// empty: there is none.
std::string BestOverall(const std::vector<const Contest*>& contests) {
  std::map<std::string, GeometricMean> means;
  for (const Contest* contest : contests) {
    for (const Cell& cell : contest->summary->cells) {
      if (cell.shape != contest->shape->name || !IsOurs(*contest->summary, cell)) continue;
      means[cell.variant].Add(*cell.p50_us.value);
    }
  }
  std::string best;
  for (const auto& [variant, mean] : means) {
    if (mean.n() != static_cast<int64_t>(contests.size())) continue;
    if (best.empty() || mean.value() < means.at(best).value()) best = variant;
  }
  return best;
}

}  // namespace

const summary::OverPeer* OverPeerOf(const Cell& cell, std::string_view peer) {
  for (const summary::OverPeer& over : cell.over_peers) {
    if (over.peer == peer) return &over;
  }
  return nullptr;
}

const summary::OverPeer* Contest::OverBest(const Cell* cell) const {
  return cell == nullptr ? nullptr : OverPeerOf(*cell, peer->name);
}

std::vector<Contest> ContestsOf(const Summary& summary) {
  std::vector<Contest> contests;
  if (!summary.provenance.alone) return contests;
  for (const Shape& shape : summary.shapes) {
    Contest contest = {.summary = &summary,
                       .shape = &shape,
                       .peer = summary.FastestPeer(shape.name),
                       .fastest = FastestArm(summary, shape)};
    if (contest.peer == nullptr || contest.OverBest(contest.fastest) == nullptr) continue;
    const auto chosen = summary.provenance.chosen.find(shape.name);
    if (chosen != summary.provenance.chosen.end()) {
      contest.library = FastestArm(summary, shape,
                                   [&](const Cell& cell) { return cell.config == chosen->second; });
    }
    contests.push_back(contest);
  }
  const auto choose = [&](const Cell* Contest::*field, absl::FunctionRef<bool(bool)> masks) {
    std::vector<const Contest*> members;
    for (const Contest& contest : contests) {
      const std::optional<Attention>& attention = contest.shape->attention;
      if (masks(attention && attention->causal)) members.push_back(&contest);
    }
    const std::string best = BestOverall(members);
    for (Contest& contest : contests) {
      const std::optional<Attention>& attention = contest.shape->attention;
      if (best.empty() || !masks(attention && attention->causal)) continue;
      contest.*field = summary.FindCell(best, contest.shape->name);
    }
  };
  choose(&Contest::of_mask, [](bool causal) { return causal; });
  choose(&Contest::of_mask, [](bool causal) { return !causal; });
  choose(&Contest::of_all, [](bool) { return true; });
  return contests;
}

std::string MegajoulesPerExaflop(const Shape& shape, const std::optional<summary::Alone>& alone) {
  if (!alone || !alone->joules.value || !(shape.flops > 0)) return std::string(kNone);
  return FormatSignificant(*alone->joules.value / shape.flops * 1e12, 3);
}

}  // namespace warpledger::report
