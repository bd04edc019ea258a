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
#include "reports/model/records.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"

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
      const auto same = std::find_if(out.begin(), out.end(), [&](const Pair& other) {
        return other.shape->name == shape.name;
      });
      if (same == out.end()) {
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
      if (timed && std::find(out.begin(), out.end(), peer.name) == out.end()) {
        out.push_back(peer.name);
      }
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
    std::string link = DesignLink(pair.record->summary, up);
    if (std::find(out.begin(), out.end(), link) == out.end()) out.push_back(std::move(link));
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

// "Over the best of PyTorch's backends, fp16: 1.149× (geometric mean of 36 problems, 0.993× to
// 1.258×)." for each type.
std::string MeansSentences(const std::vector<ChosenSeries>& all) {
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
  return Cat("The fastest kernels over the best of PyTorch's backends: ", JoinWords(types), ". ");
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
      const auto pair = std::find_if(chosen.pairs.begin(), chosen.pairs.end(), [&](const Pair& p) {
        return p.shape->attention->seq_q == length;
      });
      row.push_back(pair == chosen.pairs.end()
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
      "problem | our fastest variant, p50 µs: | best peer, p50 µs: | over it: | without a "
      "dependent "
      "launch: | record | machine code");
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
      if (!peer.available || peer.shape != pair.shape->name) continue;
      std::string text = Cat(Code(PeerName(peer.name)), " (", peer.version, ")");
      if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
    }
  }
  return JoinWords(out);
}

std::string RecordsTable(const std::vector<Pair>& pairs) {
  std::vector<const ReadRecord*> used;
  for (const Pair& pair : pairs) {
    if (std::find(used.begin(), used.end(), pair.record) == used.end()) {
      used.push_back(pair.record);
    }
  }
  Table table("record | design | state");
  for (const ReadRecord* record : used) {
    table.AddRow({Code(record->summary.run_id), DesignLink(record->summary, ""), StateOf(*record)});
  }
  return table.ToMarkdown();
}

// --- Each alone ------------------------------------------------------------------

// Problems whose contenders were beside the same peers: a mean over them compares like with like.
struct PeerGroup {
  std::set<std::string> peers;
  std::vector<Contest> contests;  // a problem once, of the newest record
};

std::set<std::string> PeersOf(const Contest& contest) {
  std::set<std::string> out;
  for (const Peer& peer : contest.summary->peers) {
    if (peer.available && peer.shape == contest.shape->name) out.insert(PeerName(peer.name));
  }
  return out;
}

bool IsNewer(const Summary& a, const Summary& b) {
  return a.provenance.created_utc > b.provenance.created_utc;
}

// That with the most peers first.
std::vector<PeerGroup> GroupsOf(const std::vector<ReadRecord>& records) {
  std::vector<PeerGroup> out;
  for (const ReadRecord& record : records) {
    for (const Contest& contest : ContestsOf(record.summary)) {
      const std::set<std::string> peers = PeersOf(contest);
      auto group = std::find_if(out.begin(), out.end(),
                                [&](const PeerGroup& each) { return each.peers == peers; });
      if (group == out.end()) group = out.insert(out.end(), {peers, {}});
      std::vector<Contest>& contests = group->contests;
      auto same = std::find_if(contests.begin(), contests.end(), [&](const Contest& other) {
        return other.shape->name == contest.shape->name;
      });
      if (same == contests.end()) {
        contests.push_back(contest);
      } else if (IsNewer(*contest.summary, *same->summary)) {
        *same = contest;
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const PeerGroup& a, const PeerGroup& b) {
    return std::pair(a.peers.size(), a.contests.size()) >
           std::pair(b.peers.size(), b.contests.size());
  });
  return out;
}

// Ways to stand for us, from the kindest to the one that a user gets without choosing.
struct Choice {
  const char* name;
  const Cell* Contest::*cell;
};
constexpr Choice kChoices[] = {{"the fastest variant of each problem", &Contest::fastest},
                               {"one per head_dim and mask", &Contest::of_mask},
                               {"one per head_dim", &Contest::of_all},
                               {"the library's own choice", &Contest::library}};

std::string MeanCell(const GeometricMean& mean, int64_t of) {
  if (mean.n() == 0) return std::string(kNone);
  return Cat(FormatRatio(mean.value()),
             mean.n() == of ? "" : Cat(" (", Count(mean.n(), "cell"), ")"));
}

// Over the best peer, of all problems and by head_dim.
std::string ChoicesTable(const std::vector<Contest>& contests) {
  std::map<int64_t, std::vector<const Contest*>> by_dim;
  for (const Contest& contest : contests) {
    if (contest.shape->attention) {
      by_dim[contest.shape->attention->head_dim].push_back(&contest);
    }
  }
  Table table("over the best peer, geometric mean | all:");
  for (const auto& [dim, members] : by_dim) {
    table.AddColumn(
        Cat("head_dim ", dim, " (", Count(static_cast<int64_t>(members.size()), "problem"), "):"));
  }
  const auto add = [&](const std::string& name, bool joules, const Cell* Contest::*cell) {
    const auto mean_of = [&](auto counts) {
      GeometricMean mean;
      int64_t of = 0;
      for (const Contest& contest : contests) {
        if (!counts(contest)) continue;
        ++of;
        const summary::OverPeer* over = contest.OverBest(contest.*cell);
        if (over == nullptr || (joules && !over->joules)) continue;
        mean.Add(joules ? *over->joules->value : *over->time.value);
      }
      return MeanCell(mean, of);
    };
    std::vector<std::string> row = {name,
                                    Cat("**", mean_of([](const Contest&) { return true; }), "**")};
    for (const auto& [dim, members] : by_dim) {
      row.push_back(mean_of([dim = dim](const Contest& contest) {
        return contest.shape->attention && contest.shape->attention->head_dim == dim;
      }));
    }
    table.AddRow(std::move(row));
  };
  for (const Choice& choice : kChoices) add(choice.name, false, choice.cell);
  add("joules: the fastest variant", true, &Contest::fastest);
  add("joules: the library's own choice", true, &Contest::library);
  return table.ToMarkdown();
}

std::string RatioCell(const Contest& contest, const Cell* cell) {
  const summary::OverPeer* over = contest.OverBest(cell);
  return over == nullptr ? std::string(kNone) : FormatRatio(over->time.value);
}

std::string ClocksCell(const Contest& contest, std::optional<double> summary::Alone::*field,
                       int digits) {
  const auto one = [&](const std::optional<summary::Alone>& alone) {
    return alone && (*alone).*field ? FormatSignificant(*((*alone).*field), digits)
                                    : std::string(kNone);
  };
  return Cat(one(contest.fastest->alone), " / ", one(contest.peer->alone));
}

// A page is of a design's newest record.
std::string RecordCell(const Contest& contest, const std::vector<PeerGroup>& groups) {
  const Summary& summary = *contest.summary;
  for (const PeerGroup& group : groups) {
    for (const Contest& other : group.contests) {
      if (other.summary->design == summary.design && IsNewer(*other.summary, summary)) {
        return Code(summary.run_id);
      }
    }
  }
  return DesignLink(summary, "");
}

std::string ContestsTable(const std::vector<Contest>& contests,
                          const std::vector<PeerGroup>& groups) {
  Table table(
      "problem | ours, TFLOP/s: | best peer, TFLOP/s: | fastest variant over it: | per head_dim "
      "and mask: | per head_dim: | library: | SM clock, MHz, ours / peer: | W: | MJ per exaFLOP: | "
      "record");
  for (const Contest& contest : contests) {
    const auto tflops = [&](const summary::Times& times) {
      return FormatTflops(TeraflopsPerS(*contest.shape, *times.p50_us.value));
    };
    table.AddRow({Code(contest.shape->name), tflops(*contest.fastest),
                  Cat(tflops(*contest.peer), " (", PeerName(contest.peer->name), ")"),
                  RatioWithInterval(contest.OverBest(contest.fastest)->time),
                  RatioCell(contest, contest.of_mask), RatioCell(contest, contest.of_all),
                  RatioCell(contest, contest.library),
                  ClocksCell(contest, &summary::Alone::sm_mhz, 4),
                  ClocksCell(contest, &summary::Alone::watts, 3),
                  Cat(MegajoulesPerExaflop(*contest.shape, contest.fastest->alone), " / ",
                      MegajoulesPerExaflop(*contest.shape, contest.peer->alone)),
                  RecordCell(contest, groups)});
  }
  return table.ToMarkdown();
}

// A peer at a time: where it was timed, and what stands for us beside it.
std::string PeersTable(const std::vector<Contest>& contests) {
  Table table("peer | problems: | the fastest variant over it: | the library over it: | version");
  std::vector<const Peer*> peers;
  for (const Contest& contest : contests) {
    for (const Peer& peer : contest.summary->peers) {
      if (peer.available && std::none_of(peers.begin(), peers.end(), [&](const Peer* other) {
            return other->name == peer.name;
          })) {
        peers.push_back(&peer);
      }
    }
  }
  for (const Peer* peer : peers) {
    GeometricMean fastest;
    GeometricMean library;
    for (const Contest& contest : contests) {
      const auto add = [&](const Cell* cell, GeometricMean* mean) {
        const summary::OverPeer* over = cell ? OverPeerOf(*cell, peer->name) : nullptr;
        if (over != nullptr) mean->Add(*over->time.value);
      };
      add(contest.fastest, &fastest);
      add(contest.library, &library);
    }
    table.AddRow({PeerName(peer->name), Cat(fastest.n()), MeanCell(fastest, fastest.n()),
                  MeanCell(library, fastest.n()), peer->version});
  }
  return table.ToMarkdown();
}

// "Each alone …: **1.116×** over the best peer" for a README.
std::string AloneSentence(const std::vector<Contest>& contests) {
  GeometricMean fastest;
  GeometricMean library;
  std::vector<double> ratios;
  for (const Contest& contest : contests) {
    ratios.push_back(*contest.OverBest(contest.fastest)->time.value);
    fastest.Add(ratios.back());
    if (const summary::OverPeer* over = contest.OverBest(contest.library)) {
      library.Add(*over->time.value);
    }
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return Cat(
      "Each contender alone, at the clock that its own power allows: our fastest variant is **",
      FormatRatio(fastest.value()), "** over the best peer (geometric mean of ",
      Count(fastest.n(), "problem"), ", ", FormatRatio(*least), " to ", FormatRatio(*most), ")",
      library.n() == 0 ? ""
                       : Cat(", and the library's own choice **", FormatRatio(library.value()),
                             "** (", Count(library.n(), "problem"), ")"),
      ". ");
}

constexpr std::string_view kAlone =
    "Each contender ran by itself long enough for its clock to stand, ours and peers in rounds "
    "that "
    "change direction ([0045](../decisions/0045-each-alone.md)). Intervals are of this board. A "
    "ratio to a peer at the power limit exists only here: where arms take turns, neighbours set "
    "their clock.";

constexpr std::string_view kDependentLaunch =
    "With a dependent launch a call begins beside the end of the one before, as no peer's does "
    "here.";

constexpr std::string_view kWhatCounts =
    "Ratios are of medians of one record, above 1 ours is faster; our fastest variant differs "
    "between cells.";

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
    out.readme = "No record has a variant of ours beside a peer that was timed alone.\n";
    out.page = Cat("# The fastest kernels beside their peers on ", gpu, "\n\n", out.readme);
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
  out.page = Cat(
      "# The fastest kernels beside their peers on ", gpu,
      "\n\nWritten from the newest record of each design, and of contenders alone of each set "
      "of peers, by `warpledger standings`; edit the records or the renderer, never this page. ",
      kWhatCounts,
      " Two records are never set against each other. Peers are PyTorch's backends, each timed "
      "alone in the same run ([0020](../decisions/0020-peers-alone.md)): ",
      PeerVersions(all),
      ". Records whose peers took turns, or some of whose variants read K and V in 8 bits, don't "
      "count here. Where several have the same problems, that one counts which has most "
      "lengths, then that in which ours is fastest. A row whose "
      "machine code is older has variants that this tree's kernels have changed since.\n\n");
  if (!groups.empty()) Append(&out.page, "## Each alone\n\n", kAlone, "\n\n");
  for (const PeerGroup& group : groups) {
    if (groups.size() > 1) {
      Append(&out.page, "### Beside ", JoinWords({group.peers.begin(), group.peers.end()}), "\n\n");
    }
    Append(&out.page, ChoicesTable(group.contests), "\n", PeersTable(group.contests), "\n",
           ContestsTable(group.contests, groups), "\n");
  }
  if (!series.empty()) {
    Append(&out.page, groups.empty() ? "## By length\n\n" : "## By length, arms in turn\n\n",
           picture(""), groups.empty() ? Cat(MeansTable(series, ""), "\n") : "",
           LengthsTable(series, groups.empty()), "\n");
    out.readme += picture(prefix);
  }
  if (!groups.empty()) {
    out.readme += AloneSentence(groups.front().contests);
  } else if (!series.empty()) {
    out.readme += MeansSentences(series);
  }
  if (!others.empty()) {
    Append(&out.page, "## Other problems\n\n", OthersTable(others, ""), "\n", kDependentLaunch,
           "\n\n");
  }
  Append(&out.page, "## The variants\n\n", ArmsTable(all), "\n## Records\n\n", RecordsTable(all));
  Append(&out.readme, "[Every problem, the variants and what counts](", prefix, kStandingsFile,
         ").\n");
  return out;
}

}  // namespace warpledger::report
