// SPDX-License-Identifier: Apache-2.0
// How fast the kernels are as sequences get longer, beside the peers.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reports/model/derived/beside_peers.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

// Every length of any series.
std::vector<int64_t> Lengths(const std::vector<LengthSeries>& all) {
  std::vector<int64_t> out;
  for (const LengthSeries& series : all) {
    for (const Shape* shape : series.shapes) out.push_back(shape->attention->seq_q);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// One row per series and line, one column per length; `cell` gives a shape's text.
template <typename CellText>
void AddRow(Table& table, const LengthSeries& series, const std::vector<int64_t>& lengths,
            std::vector<std::string> row, CellText cell) {
  for (const int64_t length : lengths) {
    const auto* shape =
        FindIn(series.shapes, [&](const Shape* s) { return s->attention->seq_q == length; });
    row.push_back(shape == nullptr ? std::string(kNone) : cell(**shape));
  }
  table.AddRow(std::move(row));
}

std::string RateTable(const Summary& summary, const std::vector<LengthSeries>& all) {
  const std::vector<int64_t> lengths = Lengths(all);
  Table table("TFLOP/s | of");
  for (const int64_t length : lengths) table.AddColumn(Cat("S = ", length, ":"));
  for (const LengthSeries& series : all) {
    const auto add_ours = [&](const char* name, int64_t kv_bits) {
      AddRow(table, series, lengths, {SeriesName(series), name}, [&](const Shape& s) {
        const Cell* cell = FastestArm(summary, s, kv_bits);
        return cell == nullptr ? std::string(kNone)
                               : FormatTflops(TeraflopsPerS(s, *cell->p50_us.value));
      });
    };
    add_ours("our fastest variant", 16);
    if (HasEightBits(summary)) add_ours("our fastest variant, K and V in 8 bits", 8);
    for (const std::string& name : PeerNames(summary)) {
      AddRow(table, series, lengths, {SeriesName(series), PeerName(name)}, [&](const Shape& s) {
        const Peer* peer = RankedPeer(summary, name, s);
        return peer == nullptr ? std::string(kNone)
                               : FormatTflops(TeraflopsPerS(s, *peer->p50_us.value));
      });
    }
  }
  return table.ToMarkdown();
}

std::string RatioTable(const Summary& summary, const std::vector<LengthSeries>& all) {
  const std::vector<int64_t> lengths = Lengths(all);
  Table table("ours over the best peer");
  for (const int64_t length : lengths) table.AddColumn(Cat("S = ", length, ":"));
  for (const LengthSeries& series : all) {
    AddRow(table, series, lengths, {SeriesName(series)}, [&](const Shape& s) {
      const Cell* cell = FastestArm(summary, s, 16);
      const Peer* peer = summary.FastestPeer(s.name);
      if (cell == nullptr || peer == nullptr) return std::string(kNone);
      return Cat(FormatRatio(*peer->p50_us.value / *cell->p50_us.value), " (", PeerName(peer->name),
                 ")");
    });
  }
  return table.ToMarkdown();
}

// The arm whose geometric mean over the best peers is the largest, of those that are ranked in
// every cell where a peer is.
std::string BestSingleArm(const Summary& summary, const std::vector<const Shape*>& shapes) {
  std::map<std::string, GeometricMean> arms;
  for (const Shape* shape : shapes) {
    const Peer* peer = summary.FastestPeer(shape->name);
    for (const Cell& cell : summary.cells) {
      if (cell.shape != shape->name || cell.kv_bits.value_or(16) != 16 || !IsOurs(summary, cell))
        continue;
      arms[cell.variant].Add(*peer->p50_us.value / *cell.p50_us.value);
    }
  }
  const std::pair<const std::string, GeometricMean>* best = nullptr;
  for (const auto& arm : arms) {
    if (arm.second.n() != static_cast<int64_t>(shapes.size())) continue;
    if (best == nullptr || arm.second.value() > best->second.value()) best = &arm;
  }
  if (best == nullptr) return " No single variant is ranked in all of these cells.";
  return Cat(" The best single variant is ", Code(best->first), ", at ",
             FormatRatio(best->second.value()), " over the same cells.");
}

std::string Means(const Summary& summary, const std::vector<LengthSeries>& all) {
  constexpr double kFarBehind = 0.9;
  GeometricMean best_peer;
  std::map<std::string, GeometricMean> by_peer;
  std::vector<const Shape*> compared;
  std::vector<std::string> behind;
  size_t cells = 0;
  for (const LengthSeries& series : all) {
    cells += series.shapes.size();
    for (const Shape* shape : series.shapes) {
      const Cell* cell = FastestArm(summary, *shape, 16);
      const Peer* peer = summary.FastestPeer(shape->name);
      if (cell == nullptr || peer == nullptr) continue;
      const double ratio = *peer->p50_us.value / *cell->p50_us.value;
      best_peer.Add(ratio);
      compared.push_back(shape);
      if (ratio < kFarBehind)
        behind.push_back(Cat(Code(shape->name), " (", FormatRatio(ratio), ")"));
      for (const std::string& name : PeerNames(summary)) {
        const Peer* each = RankedPeer(summary, name, *shape);
        if (each != nullptr && AreLike(*cell, *each)) {
          by_peer[name].Add(*each->p50_us.value / *cell->p50_us.value);
        }
      }
    }
  }
  if (compared.empty()) return "\nNo cell has both a ranked variant of ours and a peer.\n";
  std::vector<std::string> peers;
  for (const std::string& name : PeerNames(summary)) {
    const auto found = by_peer.find(name);
    if (found == by_peer.end()) continue;
    peers.push_back(Cat(PeerName(name), " ", FormatRatio(found->second.value()), " (",
                        Count(found->second.n(), "cell"), ")"));
  }
  return Cat("\nOver ", compared.size(), " of ", Count(static_cast<int64_t>(cells), "cell"),
             " the geometric mean of our fastest variant over the best peer is **",
             FormatRatio(best_peer.value()), "**. Over each peer: ", JoinWords(peers), ".",
             BestSingleArm(summary, compared), "\n\n",
             behind.empty() ? Cat("No cell is below ", FormatLimit(kFarBehind), ".")
                            : Cat("Below ", FormatLimit(kFarBehind), ": ", JoinWords(behind), "."),
             "\n");
}

// ", except cudnn_fp8, whose products are in 8 bits"; "" where there is none such.
std::string PeersIn8Bits(const Summary& summary) {
  std::vector<std::string> names;
  for (const Peer& peer : summary.peers) {
    if (peer.available && peer.kv_bits == 8) AddOnce(PeerName(peer.name), &names);
  }
  return names.empty() ? "" : Cat(", except ", JoinWords(names), ", whose products are in 8 bits");
}

// Protocols differ in the peers' surroundings, which count at the power limit.
std::string PeersSurroundings(const Summary& summary) {
  return PeersTimedAlone(summary)
             ? "Each peer has all of its samples of a shape before the next one's begin."
             : Cat("The peers took turns, as in all records before ", kPeersAloneSince,
                   ", so at the power limit the clock of each peer also depended on the others "
                   "(decision 0020).");
}

}  // namespace

std::string ThroughputSection(const Summary& summary, std::string_view picture_prefix) {
  const std::vector<LengthSeries> all = SeriesOf(summary);
  if (all.empty()) return "";
  std::string out = Cat(
      "## Throughput by length\n\n![TFLOP/s by sequence length](",
      PicturePath(summary, picture_prefix, Cat(summary.design, "_throughput")),
      ")\n\nThese shapes differ only in their length; all have the same number of tokens. FLOP "
      "count only keys that the mask shows: about half of them under the causal mask. Our fastest "
      "variant differs between cells. ",
      HasEightBits(summary)
          ? Cat("No variant of this record is in a ratio with a peer. Peers compute in the shape's "
                "own type",
                PeersIn8Bits(summary),
                ". Our variants of that type ran beside variants with 8-bit K and V, which draw "
                "less power and so leave their neighbours a higher clock at the power limit "
                "([0020](../decisions/0020-peers-alone.md)).")
          : "Ratios are ratios of medians: above 1 ours is faster.",
      "\n\n", RateTable(summary, all));
  if (summary.peers.empty()) return out + "\nThe record has no peer.\n";
  if (HasEightBits(summary)) return Cat(out, "\n", PeersSurroundings(summary), "\n");
  return Cat(out, "\n", RatioTable(summary, all), "\n", PeersSurroundings(summary), "\n",
             Means(summary, all));
}

std::string BesidePeersSection(const Summary& summary) {
  if (!SeriesOf(summary).empty() || summary.design == kSmallShapesDesign) return "";
  Table table("shape | our fastest variant | p50, µs:");
  std::vector<std::string> timed;
  for (const std::string& name : PeerNames(summary)) {
    const bool ranked = std::any_of(
        summary.shapes.begin(), summary.shapes.end(),
        [&](const Shape& shape) { return RankedPeer(summary, name, shape) != nullptr; });
    if (!ranked) continue;
    timed.push_back(name);
    table.AddColumn(Cat(PeerName(name), ", µs:"));
    table.AddColumn(Cat("over ", PeerName(name), ":"));
  }
  if (timed.empty()) return "";
  for (const Shape* shape : ShapesMainFirst(summary)) {
    const Cell* ours = FastestArm(summary, *shape);
    std::vector<std::string> row = {
        Code(shape->name), ours == nullptr ? std::string(kNone) : Code(ours->variant),
        ours == nullptr ? std::string(kNone) : FormatUs(ours->p50_us.value)};
    for (const std::string& name : timed) {
      const Peer* peer = RankedPeer(summary, name, *shape);
      row.push_back(peer == nullptr ? std::string(kNone) : FormatUs(peer->p50_us.value));
      row.push_back(peer == nullptr || ours == nullptr || !AreLike(*ours, *peer)
                        ? std::string(kNone)
                        : FormatRatio(*peer->p50_us.value / *ours->p50_us.value));
    }
    table.AddRow(row);
  }
  return Cat(
      "## Beside the peers\n\nPeers are PyTorch's backends, timed in the same run by a process "
      "between ours; `flash` is the FlashAttention-2 in PyTorch. Ratios are ratios of medians: "
      "above 1 ours is faster. Our fastest variant differs between shapes; variants whose verdict "
      "is BROKEN or INVALID don't count. Peers compute in the shape's own type",
      PeersIn8Bits(summary),
      ", so they do more work than a variant with K and V in 8 bits. A peer that does not run a "
      "shape, or fails the check, has no time there. ",
      PeersSurroundings(summary), "\n\n", table.ToMarkdown());
}

std::string PlainReadSection(const Summary& summary) {
  Table table(
      "shape | plain read of K and V, p50 µs: | our fastest variant | p50, µs: | over the read:");
  bool timed = false;
  for (const Shape* shape : ShapesMainFirst(summary)) {
    const Floor* read = summary.FindFloor(shape->name, kReadFloor);
    const Cell* ours = FastestArm(summary, *shape, 16);
    if (read == nullptr || !read->p50_us.value) continue;
    timed = true;
    table.AddRow({Code(shape->name),
                  Cat(FormatUs(read->p50_us.value), " ",
                      FormatUsInterval(read->p50_us.low, read->p50_us.high)),
                  ours == nullptr ? std::string(kNone) : Code(ours->variant),
                  ours == nullptr ? std::string(kNone) : FormatUs(ours->p50_us.value),
                  ours == nullptr ? std::string(kNone)
                                  : FormatRatio(*ours->p50_us.value / *read->p50_us.value)});
  }
  if (!timed) return "";
  return Cat(
      "## Beside a plain read\n\nThe plain read is a kernel that reads K and V once and computes "
      "nothing: 16 bytes per load, with up to 128 KiB in flight on each SM. It is timed in the "
      "same blocks as our variants, so clocks, power limit and memory are the same. It ends before "
      "the next call begins; a variant with a dependent launch can overlap the next call.\n\n",
      table.ToMarkdown());
}

}  // namespace warpledger::report
