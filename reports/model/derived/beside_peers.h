// SPDX-License-Identifier: Apache-2.0
// Our arms beside the peers of the same record, and shapes that differ in their length alone.
//
// Contract: pure functions of a summary; pointers are into it, and null where it has no such entry.
// Only what may be ranked counts: right, timed and, of ours, no control. No errors.
//
//   const Cell* ours = FastestArm(summary, shape, 16);
//   const Peer* peer = summary.FastestPeer(shape.name);

#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "reports/model/summary.h"

namespace warpledger::report {

// From then on peers.py times one peer after another.
inline constexpr std::string_view kPeersAloneSince = "2026-11-21T21:00:00Z";
bool PeersTimedAlone(const Summary& summary);

// Whether an arm reads K and V in 8 bits: at the power limit its neighbours have its clock.
bool HasEightBits(const Summary& summary);

// Whether an arm multiplies in 8 bits, as FP8 peers do. Others with K and V in 8 bits widen them.
bool MultipliesIn8Bits(const Cell& cell);
// Whether both multiply in 8 bits, or neither does: else their ratio compares unlike work.
bool AreLike(const Cell& cell, const Peer& peer);

bool IsOurs(const Summary& summary, const Cell& cell);
// Of the arms that `counts` takes.
const Cell* FastestArm(const Summary& summary, const Shape& shape,
                       absl::FunctionRef<bool(const Cell&)> counts);
// `kv_bits`: of those arms alone that read K and V so.
const Cell* FastestArm(const Summary& summary, const Shape& shape,
                       std::optional<int64_t> kv_bits = std::nullopt);

// In the order of the record, each once.
std::vector<std::string> PeerNames(const Summary& summary);
const Peer* RankedPeer(const Summary& summary, std::string_view name, const Shape& shape);

// Shapes of as many tokens, heads and columns each.
struct LengthSeries {
  std::string dtype;
  int64_t head_dim = 0;
  bool causal = false;
  std::vector<const Shape*> shapes;  // of attention, by rising length, three at least
};

// By head dimension, full before causal; of several series of one mask and type the one with most
// lengths. Without those of which nothing was measured.
std::vector<LengthSeries> SeriesOf(const Summary& summary);
// "head_dim 128, full"; the type too where it isn't fp16.
std::string SeriesName(const LengthSeries& series);

double TeraflopsPerS(const Shape& shape, double us);

class GeometricMean {
 public:
  void Add(double ratio) {
    log_ += std::log(ratio);
    ++n_;
  }
  int64_t n() const { return n_; }
  double value() const { return std::exp(log_ / static_cast<double>(n_)); }

 private:
  double log_ = 0;
  int64_t n_ = 0;
};

// Contenders that were timed alone, each at the clock that its own power allows (decisions/0045):
// the only ones whose ratio to a peer means what who uses one of them gets.
//
// Contract: pure functions of a summary; pointers are into it. Only what may be ranked counts.
//
//   for (const Contest& contest : ContestsOf(summary)) contest.OverBest(contest.fastest);

// A problem, and what of ours stands for us there: of contenders that multiply in as many bits.
struct Contest {
  const Summary* summary = nullptr;
  const Shape* shape = nullptr;
  bool in_8_bits = false;
  const Peer* peer = nullptr;     // the fastest
  const Cell* fastest = nullptr;  // of all variants
  // The variant that is best on average over the record's problems of this head_dim and mask, and
  // over all of its problems; null where none was right and timed on all of them.
  const Cell* of_mask = nullptr;
  const Cell* of_all = nullptr;
  // What a call of the record's library ran; null: no variant of the record, or none that this
  // tree's library has.
  const Cell* library = nullptr;

  // The cell over the best peer; null for no cell.
  const summary::OverPeer* OverBest(const Cell* cell) const;
};

const summary::OverPeer* OverPeerOf(const Cell& cell, std::string_view peer);

// Those with a variant and a peer, in the order of the record, those in 8 bits last; of a record
// whose arms took turns none.
std::vector<Contest> ContestsOf(const Summary& summary);

// What 10^18 of the problem's operations take, in millions of joules: "1.17"; kNone where that is
// not known.
std::string MegajoulesPerExaflop(const Shape& shape, const std::optional<summary::Alone>& alone);

}  // namespace warpledger::report
