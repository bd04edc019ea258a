// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/beside_peers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

// Fewer lengths make no curve. plots/throughput.py has the same rule.
constexpr size_t kFewestLengths = 3;

}  // namespace

bool PeersTimedAlone(const Summary& summary) {
  return summary.provenance.created_utc >= kPeersAloneSince;
}

bool HasEightBits(const Summary& summary) {
  return std::any_of(summary.cells.begin(), summary.cells.end(),
                     [](const Cell& cell) { return cell.kv_bits == 8; });
}

bool MultipliesIn8Bits(const Cell& cell) {
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(cell.config);
  return config && sdpa::KvStorageOf(*config).queries;
}

bool AreLike(const Cell& cell, const Peer& peer) {
  return MultipliesIn8Bits(cell) == (peer.kv_bits == 8);
}

bool IsOurs(const Summary& summary, const Cell& cell) {
  return cell.role != "aa" && cell.role != "null" && summary.IsRanked(cell);
}

const Cell* FastestArm(const Summary& summary, const Shape& shape,
                       absl::FunctionRef<bool(const Cell&)> counts) {
  const Cell* fastest = nullptr;
  for (const Cell& cell : summary.cells) {
    if (cell.shape != shape.name || !IsOurs(summary, cell) || !counts(cell)) continue;
    if (fastest == nullptr || *cell.p50_us.value < *fastest->p50_us.value) fastest = &cell;
  }
  return fastest;
}

const Cell* FastestArm(const Summary& summary, const Shape& shape, std::optional<int64_t> kv_bits) {
  return FastestArm(summary, shape, [&](const Cell& cell) {
    return !kv_bits || cell.kv_bits.value_or(16) == *kv_bits;
  });
}

const Peer* RankedPeer(const Summary& summary, std::string_view name, const Shape& shape) {
  for (const Peer& peer : summary.peers) {
    if (peer.name == name && peer.shape == shape.name && peer.available && peer.correct == true &&
        peer.p50_us.value) {
      return &peer;
    }
  }
  return nullptr;
}

std::vector<LengthSeries> SeriesOf(const Summary& summary) {
  using Key = std::tuple<int64_t, bool, std::string, int64_t, int64_t, int64_t>;
  std::map<Key, std::vector<const Shape*>> by_key;
  for (const Shape& shape : summary.shapes) {
    if (!shape.attention || shape.attention->seq_q != shape.attention->seq_kv) continue;
    const Attention& a = *shape.attention;
    by_key[{a.head_dim, a.causal, a.dtype, a.batch * a.seq_q, a.heads_q, a.heads_kv}].push_back(
        &shape);
  }
  std::vector<LengthSeries> out;
  for (auto& [key, shapes] : by_key) {
    std::stable_sort(shapes.begin(), shapes.end(), [](const Shape* a, const Shape* b) {
      return a->attention->seq_q < b->attention->seq_q;
    });
    if (shapes.size() < kFewestLengths) continue;
    // Nothing of it was measured, so there is no curve either.
    if (std::none_of(shapes.begin(), shapes.end(), [&](const Shape* shape) {
          return FastestArm(summary, *shape) != nullptr ||
                 summary.FastestPeer(shape->name) != nullptr;
        })) {
      continue;
    }
    LengthSeries series = {std::get<2>(key), std::get<0>(key), std::get<1>(key), std::move(shapes)};
    if (!out.empty() && out.back().head_dim == series.head_dim &&
        out.back().causal == series.causal && out.back().dtype == series.dtype) {
      if (series.shapes.size() > out.back().shapes.size()) out.back() = std::move(series);
    } else {
      out.push_back(std::move(series));
    }
  }
  return out;
}

std::vector<std::string> PeerNames(const Summary& summary) {
  std::vector<std::string> names;
  for (const Peer& peer : summary.peers) AddOnce(peer.name, &names);
  return names;
}

double TeraflopsPerS(const Shape& shape, double us) { return shape.flops / us / 1e6; }

std::string SeriesName(const LengthSeries& series) {
  return Cat("head_dim ", series.head_dim, series.causal ? ", causal" : ", full",
             series.dtype == "fp16" ? "" : Cat(", ", series.dtype));
}

namespace {

// The variant of the least geometric mean over `contests`, of those that count on all of them;
// empty: there is none. All contests are in as many bits.
std::string BestOverall(const std::vector<const Contest*>& contests) {
  std::map<std::string, GeometricMean> means;
  for (const Contest* contest : contests) {
    for (const Cell& cell : contest->summary->cells) {
      if (cell.shape != contest->shape->name || !IsOurs(*contest->summary, cell) ||
          MultipliesIn8Bits(cell) != contest->in_8_bits) {
        continue;
      }
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

// Of this tree: a record's program may have had another one.
bool IsInLibrary(std::string_view config) {
  return std::any_of(
      std::begin(sdpa::kLibraryKernels), std::end(sdpa::kLibraryKernels),
      [&](const sdpa::LibraryKernel& kernel) { return sdpa::ConfigName(kernel.config) == config; });
}

}  // namespace

const summary::OverPeer* OverPeerOf(const Cell& cell, std::string_view peer) {
  return FindIn(cell.over_peers, [&](const summary::OverPeer& over) { return over.peer == peer; });
}

const summary::OverPeer* Contest::OverBest(const Cell* cell) const {
  return cell == nullptr ? nullptr : OverPeerOf(*cell, peer->name);
}

namespace {

std::vector<Contest> ContestsInBits(const Summary& summary, bool in_8_bits) {
  std::vector<Contest> contests;
  for (const Shape& shape : summary.shapes) {
    Contest contest = {.summary = &summary,
                       .shape = &shape,
                       .in_8_bits = in_8_bits,
                       .peer = summary.FastestPeer(shape.name, in_8_bits ? 8 : 16),
                       .fastest = FastestArm(summary, shape, [&](const Cell& cell) {
                         return MultipliesIn8Bits(cell) == in_8_bits;
                       })};
    if (contest.peer == nullptr || contest.OverBest(contest.fastest) == nullptr) continue;
    const auto chosen = summary.provenance.chosen.find(shape.name);
    if (chosen != summary.provenance.chosen.end() && IsInLibrary(chosen->second)) {
      contest.library = FastestArm(summary, shape, [&](const Cell& cell) {
        return cell.config == chosen->second && MultipliesIn8Bits(cell) == in_8_bits;
      });
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

}  // namespace

std::vector<Contest> ContestsOf(const Summary& summary) {
  if (!summary.provenance.alone) return {};
  std::vector<Contest> contests = ContestsInBits(summary, false);
  for (Contest& contest : ContestsInBits(summary, true)) contests.push_back(contest);
  return contests;
}

std::string MegajoulesPerExaflop(const Shape& shape, const std::optional<summary::Alone>& alone) {
  if (!alone || !alone->joules.value || !(shape.flops > 0)) return std::string(kNone);
  return FormatSignificant(*alone->joules.value / shape.flops * 1e12, 3);
}

}  // namespace warpledger::report
