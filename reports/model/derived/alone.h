// SPDX-License-Identifier: Apache-2.0
// Contenders that were timed alone, each at the clock that its own power allows (decisions/0045):
// the only ones whose ratio to a peer means what who uses one of them gets.
//
// Contract: pure functions of a summary; pointers are into it. Only what may be ranked counts.
//
//   for (const Contest& contest : ContestsOf(summary)) contest.OverBest(contest.fastest);

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/model/summary.h"

namespace warpledger::report {

// A problem, and what of ours stands for us there.
struct Contest {
  const Summary* summary = nullptr;
  const Shape* shape = nullptr;
  const Peer* peer = nullptr;     // the fastest
  const Cell* fastest = nullptr;  // of all variants
  // The variant that is best on average over the record's problems of this head_dim and mask, and
  // over all of its problems; null where none was right and timed on all of them.
  const Cell* of_mask = nullptr;
  const Cell* of_all = nullptr;
  const Cell* library = nullptr;  // what a call of the library runs; null: another kernel

  // The cell over the best peer; null for no cell.
  const summary::OverPeer* OverBest(const Cell* cell) const;
};

const summary::OverPeer* OverPeerOf(const Cell& cell, std::string_view peer);

// Those with a variant and a peer, in the order of the record; of a record whose arms took turns
// none.
std::vector<Contest> ContestsOf(const Summary& summary);

// What 10^18 of the problem's operations take, in millions of joules: "1.17"; kNone where that is
// not known.
std::string MegajoulesPerExaflop(const Shape& shape, const std::optional<summary::Alone>& alone);

}  // namespace warpledger::report
