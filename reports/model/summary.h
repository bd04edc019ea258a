// SPDX-License-Identifier: Apache-2.0
// What a page knows of a run: its summary (ablations/summary), with the subject's claims, and
// with problems of attention as attention sees them.
//
//   absl::StatusOr<Summary> view = ViewOf(*std::move(summary), subject);
//   const Cell* cell = view->FindCell("ladder:wmma_pv", "b1_h8_s512_d64");
//
// Errors of ViewOf(): InvalidArgument with the path of a parameter that attention's shapes have and
// this one lacks.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/plan/subject.h"
#include "ablations/summary/summary.h"
#include "absl/status/statusor.h"

namespace warpledger::report {

using summary::Attribution;
using summary::Both;
using summary::Cell;
using summary::CodeChange;
using summary::Control;
using summary::ErrorChange;
using summary::Estimate;
using summary::Floor;
using summary::InfeasibleCell;
using summary::Interaction;
using summary::kVerdictNames;
using summary::MicroValue;
using summary::Opcodes;
using summary::Peer;
using summary::Provenance;
using summary::Spread;
using summary::Statistics;
using summary::Verdict;

inline constexpr char kEmptyFloor[] = "floor:empty_kernel";
inline constexpr char kReadFloor[] = "floor:read_kv";

// The parameters that problems of attention have, and no other subject's.
struct Attention {
  int64_t batch = 0;
  int64_t heads_q = 0;
  int64_t heads_kv = 0;
  int64_t seq_q = 0;
  int64_t seq_kv = 0;
  int64_t head_dim = 0;
  int64_t embed_dim = 0;
  std::string dtype = "fp16";
  bool causal = false;
  double exponentials = 0;

  bool projected() const { return embed_dim > 0; }  // begins in front of SDPA

  void Visit(auto& f) {
    f("batch", batch, summary::kCount);
    f("heads_q", heads_q, summary::kCount);
    f("heads_kv", heads_kv, summary::kCount);
    f("seq_q", seq_q, summary::kCount);
    f("seq_kv", seq_kv, summary::kCount);
    f("head_dim", head_dim, summary::kCount);
    f("causal", causal);
    f("embed_dim", embed_dim, ablations::kOnlyWhereSet);
    f("exponentials", exponentials);
    f("dtype", dtype, ablations::kOnlyWhereSet);
  }
};

struct Shape {
  std::string name;
  std::string in_record;   // its name there
  std::string parameters;  // "n 1024": all that is no declared work; empty of attention
  double flops = 0;
  double min_bytes = 0;
  std::optional<Attention> attention;  // empty: of another subject
};

struct Summary : summary::Summary {
  std::vector<Shape> shapes;
  const ablations::Subject* subject = nullptr;  // what was measured

  // Null where today's subject has no such claim.
  const ablations::Claim* FindClaim(std::string_view id) const { return subject->FindClaim(id); }
  // The ladder at a shape: the base and its steps, in ladder order.
  std::vector<const Cell*> Ladder(std::string_view shape) const;
  // Null where the record has none.
  const Cell* FindCell(std::string_view variant, std::string_view shape) const;
  const Verdict* FindVerdict(std::string_view candidate, std::string_view shape) const;
  const Floor* FindFloor(std::string_view shape, std::string_view name = kEmptyFloor) const;
  const MicroValue* FindMicro(std::string_view name) const;
  // Whose microbenchmarks are quoted; "" where there are none.
  std::string MicroRun() const { return provenance.micro ? provenance.micro->run_id : ""; }

  // Whether intervals of verdicts are of other boards of the kind. How boards differ is not known
  // of other subjects, nor of arms that were timed alone: theirs are of the board that was
  // measured.
  bool TellsOtherBoards() const { return !statistics.spreads.empty() && !provenance.alone; }

  // Whether each launch finds an L2 that has forgotten its inputs.
  bool IsCold() const { return provenance.cache == ablations::kCacheCold; }

  // b1_h8_s512_d64 where the record has it, else the record's last shape.
  const Shape& MainShape() const;

  // Whether a cell may be compared with others: it passed correctness, it was
  // timed, and its verdict does not say that the timing means nothing.
  bool IsRanked(const Cell& cell) const;
  // Of the ranked cells of a shape's ladder; null when there is none.
  const Cell* FastestStep(std::string_view shape) const;
  const Cell* LastStep(std::string_view shape) const;
  // Of the peers that ran, were found right and multiply in so many bits; null when there is none.
  // One that multiplies in 8 does less work than any other contender.
  const Peer* FastestPeer(std::string_view shape, int64_t kv_bits = 16) const;
};

absl::StatusOr<Summary> ViewOf(summary::Summary summary, const ablations::Subject& subject);

// How much faster than the first of its ladder; empty where that means nothing.
inline Estimate GainOf(const Cell& cell) { return cell.speedup_over_first.value_or(Estimate{}); }

// Everything that the record says of its origin, flattened: {"gpu.name", "…"}.
std::vector<std::pair<std::string, std::string>> ProvenanceRows(const Summary& summary);

}  // namespace warpledger::report
