// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "reports/model/derived/beside_peers.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/records.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"
#include "reports/pages/standings_alone.h"

namespace warpledger::report {
namespace {

// The type whose lengths the picture shows; one panel holds one type.
constexpr std::string_view kPicturedType = "fp16";

// Our fastest arm and the best peer of a shape, both of one record.
struct Pair {
  const ReadRecord* record = nullptr;
  const Shape* shape = nullptr;
  const Cell* ours = nullptr;
  const Peer* peer = nullptr;

  bool complete() const { return ours != nullptr && peer != nullptr; }
  double ratio() const { return *peer->p50_us.value / *ours->p50_us.value; }
};

Pair PairOf(const ReadRecord& record, const Shape& shape) {
  return {.record = &record,
          .shape = &shape,
          .ours = FastestArm(record.summary, shape),
          .peer = record.summary.FastestPeer(shape.name)};
}

bool Counts(const ReadRecord& record) {
  return PeersTimedAlone(record.summary) && !HasEightBits(record.summary) &&
         !record.summary.provenance.alone;
}

struct ChosenSeries {
  LengthSeries series;
  std::vector<Pair> pairs;  // the complete ones, by rising length
};

ChosenSeries PairsOf(const ReadRecord& record, LengthSeries series) {
  ChosenSeries out = {.series = std::move(series), .pairs = {}};
  for (const Shape* shape : out.series.shapes) {
    if (const Pair pair = PairOf(record, *shape); pair.complete()) out.pairs.push_back(pair);
  }
  return out;
}

bool IsBetter(const ChosenSeries& a, const ChosenSeries& b) {
  if (a.pairs.size() != b.pairs.size()) return a.pairs.size() > b.pairs.size();
  const auto mean_us = [](const ChosenSeries& chosen) {
    GeometricMean mean;
    for (const Pair& pair : chosen.pairs) mean.Add(*pair.ours->p50_us.value);
    return mean.value();
  };
  return mean_us(a) < mean_us(b);
}

// One of each type, head dimension and mask, in this order.
std::vector<ChosenSeries> ChooseSeries(const std::vector<ReadRecord>& records) {
  std::map<std::tuple<std::string, int64_t, bool>, ChosenSeries> best;
  for (const ReadRecord& record : records) {
    if (!Counts(record)) continue;
    for (LengthSeries& series : SeriesOf(record.summary)) {
      ChosenSeries candidate = PairsOf(record, std::move(series));
      if (candidate.pairs.empty()) continue;
      const LengthSeries& s = candidate.series;
      const auto [at, is_new] =
          best.try_emplace({s.dtype == kPicturedType ? "" : s.dtype, s.head_dim, s.causal});
      if (is_new || IsBetter(candidate, at->second)) at->second = std::move(candidate);
    }
  }
  std::vector<ChosenSeries> out;
  for (auto& [key, chosen] : best) out.push_back(std::move(chosen));
  return out;
}

// Every other problem, in the order in which the records name them.
std::vector<Pair> ChooseOthers(const std::vector<ReadRecord>& records,
                               const std::vector<ChosenSeries>& series) {
  std::set<std::string> in_series;
  for (const ChosenSeries& chosen : series) {
    for (const Shape* shape : chosen.series.shapes) in_series.insert(shape->name);
  }
  std::vector<Pair> out;
  for (const ReadRecord& record : records) {
    if (!Counts(record)) continue;
    for (const Shape& shape : record.summary.shapes) {
      const Pair pair = PairOf(record, shape);
      if (!pair.complete() || in_series.count(shape.name) != 0) continue;
      Pair* same = FindIn(out, [&](const Pair& other) { return other.shape->name == shape.name; });
      if (same == nullptr) {
        out.push_back(pair);
      } else if (*pair.ours->p50_us.value < *same->ours->p50_us.value) {
        *same = pair;
      }
    }
  }
  return out;
}

// Whether the kernels that these figures are of are those of this tree.
std::string KernelsCell(const std::vector<Pair>& pairs) {
  std::map<const ReadRecord*, std::vector<std::string>> arms;
  for (const Pair& pair : pairs) arms[pair.record].push_back(pair.ours->variant);
  const bool stale = std::any_of(arms.begin(), arms.end(), [](const auto& entry) {
    return entry.first->staleness.IsStaleFor(entry.second);
  });
  return stale ? "**older**" : "this tree's";
}

std::vector<std::string> PeersOf(const std::vector<Pair>& pairs) {
  std::vector<std::string> out;
  for (const Pair& pair : pairs) {
    for (const Peer& peer : pair.record->summary.peers) {
      const bool timed = RankedPeer(pair.record->summary, peer.name, *pair.shape) != nullptr;
      if (timed && AreLike(*pair.ours, peer)) AddOnce(peer.name, &out);
    }
  }
  return out;
}

std::string MeanOver(const std::vector<Pair>& pairs, std::string_view peer_name) {
  GeometricMean mean;
  for (const Pair& pair : pairs) {
    const Peer* peer = RankedPeer(pair.record->summary, peer_name, *pair.shape);
    if (peer != nullptr) mean.Add(*peer->p50_us.value / *pair.ours->p50_us.value);
  }
  if (mean.n() == 0) return std::string(kNone);
  const bool all = mean.n() == static_cast<int64_t>(pairs.size());
  return Cat(FormatRatio(mean.value()), all ? "" : Cat(" (", Count(mean.n(), "cell"), ")"));
}

std::vector<Pair> AllPairs(const std::vector<ChosenSeries>& all) {
  std::vector<Pair> out;
  for (const ChosenSeries& chosen : all) {
    out.insert(out.end(), chosen.pairs.begin(), chosen.pairs.end());
  }
  return out;
}

// "[hopper_d64](hopper_d64.md)", each design once.
std::string Designs(const std::vector<Pair>& pairs, std::string_view up) {
  std::vector<std::string> out;
  for (const Pair& pair : pairs) {
    AddOnce(DesignLink(pair.record->summary, up), &out);
  }
  return JoinWords(out);
}

// A row per type and head dimension, and one per type with several of these.
std::string MeansTable(const std::vector<ChosenSeries>& all, std::string_view up) {
  const std::vector<std::string> peers = PeersOf(AllPairs(all));
  Table table("problems | cells: | over the best peer: geometric mean: | least: | most:");
  for (const std::string& name : peers) {
    table.AddColumn(Cat("over ", PeerName(name), ":"));
  }
  table.AddColumn("record");
  table.AddColumn("machine code");
  const auto add = [&](const std::string& name, const std::vector<Pair>& pairs) {
    GeometricMean mean;
    for (const Pair& pair : pairs) mean.Add(pair.ratio());
    const auto [least, most] =
        std::minmax_element(pairs.begin(), pairs.end(),
                            [](const Pair& a, const Pair& b) { return a.ratio() < b.ratio(); });
    std::vector<std::string> row = {name, Cat(pairs.size()),
                                    Cat("**", FormatRatio(mean.value()), "**"),
                                    FormatRatio(least->ratio()), FormatRatio(most->ratio())};
    for (const std::string& peer : peers) row.push_back(MeanOver(pairs, peer));
    row.push_back(Designs(pairs, up));
    row.push_back(KernelsCell(pairs));
    table.AddRow(std::move(row));
  };
  for (size_t begin = 0; begin < all.size();) {
    const std::string& dtype = all[begin].series.dtype;
    std::vector<Pair> of_type;
    size_t dims = 0;
    size_t at = begin;
    while (at < all.size() && all[at].series.dtype == dtype) {
      const int64_t head_dim = all[at].series.head_dim;
      std::vector<Pair> of_dim;
      for (;
           at < all.size() && all[at].series.dtype == dtype && all[at].series.head_dim == head_dim;
           ++at) {
        of_dim.insert(of_dim.end(), all[at].pairs.begin(), all[at].pairs.end());
      }
      add(Cat(dtype, ", head_dim ", head_dim), of_dim);
      of_type.insert(of_type.end(), of_dim.begin(), of_dim.end());
      ++dims;
    }
    if (dims > 1) add(Cat("all of ", dtype), of_type);
    begin = at;
  }
  return table.ToMarkdown();
}

// "On NVIDIA H200, variants in turn …: **1.149×** in fp16 (geometric mean of 36 problems, 0.993× to
// 1.258×)" with each type.
std::string MeansSentences(const std::vector<ChosenSeries>& all, std::string_view gpu) {
  std::map<std::string, std::vector<double>> by_type;
  for (const ChosenSeries& chosen : all) {
    for (const Pair& pair : chosen.pairs) by_type[chosen.series.dtype].push_back(pair.ratio());
  }
  std::vector<std::string> types;
  for (const auto& [dtype, ratios] : by_type) {
    GeometricMean mean;
    for (const double ratio : ratios) mean.Add(ratio);
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    types.push_back(Cat("**", FormatRatio(mean.value()), "** in ", dtype, " (geometric mean of ",
                        Count(mean.n(), "problem"), ", ", FormatRatio(*least), " to ",
                        FormatRatio(*most), ")"));
  }
  return Cat("On ", gpu,
             ", the fastest variant of each problem over the best of PyTorch's backends: ",
             JoinWords(types),
             ". Variants took turns, so the clock of each also depends on its neighbours. ");
}

std::string LengthsTable(const std::vector<ChosenSeries>& all, bool with_ratios) {
  std::set<int64_t> lengths;
  for (const ChosenSeries& chosen : all) {
    for (const Shape* shape : chosen.series.shapes) lengths.insert(shape->attention->seq_q);
  }
  Table table(with_ratios ? "TFLOP/s (over the best peer)" : "TFLOP/s");
  for (const int64_t length : lengths) table.AddColumn(Cat("S = ", length, ":"));
  for (const ChosenSeries& chosen : all) {
    std::vector<std::string> row = {SeriesName(chosen.series)};
    for (const int64_t length : lengths) {
      const Pair* pair =
          FindIn(chosen.pairs, [&](const Pair& p) { return p.shape->attention->seq_q == length; });
      row.push_back(pair == nullptr
                        ? std::string(kNone)
                        : Cat(FormatTflops(TeraflopsPerS(*pair->shape, *pair->ours->p50_us.value)),
                              with_ratios ? Cat(" (", FormatRatio(pair->ratio()), " ",
                                                PeerName(pair->peer->name), ")")
                                          : ""));
    }
    table.AddRow(std::move(row));
  }
  return table.ToMarkdown();
}

bool HasDependentLaunch(const Cell& cell) {
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(cell.config);
  return config && std::any_of(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                               [&](const sdpa::ToggleRow& row) {
                                 return row.technique == sdpa::Technique::kDependentLaunch &&
                                        (*config).*row.field != 0;
                               });
}

// Our fastest arm that begins where the call before it has ended, as every peer does; said only
// where the fastest of all does not.
std::string WithoutDependentLaunch(const Pair& pair) {
  if (!HasDependentLaunch(*pair.ours)) return std::string(kNone);
  const Cell* fastest = FastestArm(pair.record->summary, *pair.shape,
                                   [](const Cell& cell) { return !HasDependentLaunch(cell); });
  if (fastest == nullptr) return "not timed";
  return Cat(FormatUs(fastest->p50_us.value), " (",
             FormatRatio(*pair.peer->p50_us.value / *fastest->p50_us.value), ")");
}

std::string OthersTable(const std::vector<Pair>& pairs, std::string_view up) {
  Table table(
      "problem | our fastest variant, p50 µs: | best peer, p50 µs: | ours over it: | without a "
      "dependent launch, p50 µs: | record | machine code");
  for (const Pair& pair : pairs) {
    table.AddRow({Cat(Code(pair.shape->name), " (", DescribeShape(*pair.shape), ")"),
                  FormatUs(pair.ours->p50_us.value),
                  Cat(FormatUs(pair.peer->p50_us.value), " (", PeerName(pair.peer->name), ")"),
                  FormatRatio(pair.ratio()), WithoutDependentLaunch(pair),
                  DesignLink(pair.record->summary, up), KernelsCell({pair})});
  }
  return table.ToMarkdown();
}

std::string ArmsTable(const std::vector<Pair>& pairs) {
  Table table("problem | our fastest variant");
  for (const Pair& pair : pairs) {
    table.AddRow({Code(pair.shape->name), Code(pair.ours->variant)});
  }
  return table.ToMarkdown();
}

// What the peers are, each version that was timed once.
std::string PeerVersions(const std::vector<Pair>& pairs) {
  std::vector<std::string> out;
  for (const Pair& pair : pairs) {
    for (const Peer& peer : pair.record->summary.peers) {
      if (!peer.available || peer.shape != pair.shape->name || !AreLike(*pair.ours, peer)) continue;
      AddOnce(Cat(Code(PeerName(peer.name)), " (", peer.version, ")"), &out);
    }
  }
  return JoinWords(out);
}

std::string RecordsTable(const std::vector<Pair>& pairs) {
  std::vector<const ReadRecord*> used;
  for (const Pair& pair : pairs) AddOnce(pair.record, &used);
  Table table("record | design | state");
  for (const ReadRecord* record : used) {
    table.AddRow({Code(record->summary.run_id), DesignLink(record->summary, ""), StateOf(*record)});
  }
  return table.ToMarkdown();
}

constexpr std::string_view kDependentLaunch =
    "With a dependent launch a call begins beside the end of the call before. No peer does that "
    "here, so one column has our fastest variant without it.";

constexpr std::string_view kWhatCounts =
    "A ratio above 1 means that ours is faster. Where variants took turns, a ratio divides the two "
    "medians of one record. Our fastest variant differs between cells.";

}  // namespace

absl::StatusOr<Standings> RenderStandings(std::vector<Summary> summaries,
                                          const RenderOptions& options) {
  const absl::StatusOr<std::vector<ReadRecord>> records =
      ReadRecords(std::move(summaries), options);
  if (!records.ok()) return records.status();
  const std::vector<ChosenSeries> series = ChooseSeries(*records);
  const std::vector<PeerGroup> groups = GroupsOf(*records);
  std::vector<Pair> others = ChooseOthers(*records, series);
  std::erase_if(others, [&](const Pair& pair) {
    return std::any_of(groups.begin(), groups.end(), [&](const PeerGroup& group) {
      return std::any_of(group.contests.begin(), group.contests.end(), [&](const Contest& contest) {
        return contest.shape->name == pair.shape->name;
      });
    });
  });
  std::vector<Pair> all = AllPairs(series);
  all.insert(all.end(), others.begin(), others.end());
  Standings out;
  const std::string& gpu = records->front().summary.provenance.gpu.name;
  if (all.empty() && groups.empty()) {
    out.readme_rest = "No record has a variant of ours beside a peer that was timed alone.\n";
    out.page = Cat("# The fastest kernels beside their peers on ", gpu, "\n\n", out.readme_rest);
    return out;
  }
  std::set<size_t> pictured;
  for (const ChosenSeries& chosen : series) {
    if (chosen.series.dtype != kPicturedType) continue;
    pictured.insert(static_cast<size_t>(chosen.pairs.front().record - records->data()));
  }

  out.pictured.assign(pictured.begin(), pictured.end());
  const std::string& prefix = options.picture_prefix;
  const auto picture = [&](std::string_view up) {
    return out.pictured.empty() ? std::string()
                                : Cat("![TFLOP/s by sequence length beside the peers](", up,
                                      kStandingsPicture, ".svg)\n\n");
  };
  if (!groups.empty()) out.readme_alone = AloneSentence(groups.front(), gpu);
  const std::string means = series.empty() || !groups.empty() ? "" : MeansSentences(series, gpu);
  out.page = Cat(
      "# The fastest kernels beside their peers on ", gpu, "\n\n", out.readme_alone, means, "\n\n",
      kWhatCounts,
      " Two records are never compared. Tables of variants in turn have PyTorch's backends as "
      "peers, each timed alone in the same run ([0020](../decisions/0020-peers-alone.md)): ",
      PeerVersions(all),
      ". Records whose peers took turns, or whose variants read K and V in 8 bits, don't count "
      "here. If several records have the same problems, the one with most lengths counts, then the "
      "one in which ours is fastest. “Older” machine code: this tree's kernels have changed since "
      "the record. `warpledger standings` writes this page from the newest record of each design, "
      "and of each set of peers for contenders alone.\n\n");
  if (!groups.empty()) out.page += AloneSection(groups);
  if (!series.empty()) {
    Append(&out.page, groups.empty() ? "## By length\n\n" : "## By length, arms in turn\n\n",
           picture(""), groups.empty() ? Cat(MeansTable(series, ""), "\n") : "",
           LengthsTable(series, groups.empty()), "\n");
    out.readme_picture = picture(prefix);
  }
  if (!others.empty()) {
    Append(&out.page, "## Other problems\n\n", OthersTable(others, ""), "\n", kDependentLaunch,
           "\n\n");
  }
  Append(&out.page, "## The variants\n\n", ArmsTable(all), "\n## Records\n\n", RecordsTable(all));
  const std::string link =
      Cat("[Every problem, the variants and what counts](", prefix, kStandingsFile, ").");
  out.readme_rest = Cat(means, out.readme_alone.empty() ? link : "", "\n");
  if (!out.readme_alone.empty()) Append(&out.readme_alone, link, " ");
  return out;
}

}  // namespace warpledger::report
