// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/standings_alone.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

std::set<std::string> PeersOf(const Contest& contest) {
  std::set<std::string> out;
  for (const Peer& peer : contest.summary->peers) {
    if (peer.available && peer.shape == contest.shape->name && AreLike(*contest.fastest, peer)) {
      out.insert(PeerName(peer.name));
    }
  }
  return out;
}

bool IsNewer(const Summary& a, const Summary& b) {
  // Of two boards at the same second, as record_files.py has them.
  const auto when = [](const Summary& it) {
    return std::tie(it.provenance.created_utc, it.provenance.gpu.uuid);
  };
  return when(a) > when(b);
}

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
      "and mask: | per head_dim: | library: | SM clock, MHz, ours / peer: | W, ours / peer: | MJ "
      "per exaFLOP, ours / peer: | record");
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
      if (peer.available && AreLike(*contest.fastest, peer) &&
          std::none_of(peers.begin(), peers.end(),
                       [&](const Peer* other) { return other->name == peer.name; })) {
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

constexpr std::string_view kAlone =
    "Each contender ran by itself until its clock was steady; rounds of ours and peers change "
    "direction ([0045](../decisions/0045-each-alone.md)). A ratio, of times or of joules, comes "
    "from the ratios within each round, so it differs a little from the quotient of the two "
    "medians beside it. Intervals are for this board. Only such runs give a ratio to a peer at the "
    "power limit: where variants take turns, neighbours "
    "influence their clock. “The library's own choice” is the kernel that the library of the "
    "record's build would have launched; it is not shown if today's library lacks that kernel. "
    "“One "
    "per head_dim and mask” and “one per head_dim” are single variants: the best on average over "
    "the record's problems of that kind.";

constexpr std::string_view kIn8Bits =
    "All contenders here get Q, K and V in 8 bits and multiply in 8 bits. They are compared with "
    "no contender in 16 bits. Scales and outputs differ between ours and the peers "
    "([README](../../ablations/subjects/sdpa/peers/README.md)).";

}  // namespace

std::vector<PeerGroup> GroupsOf(const std::vector<ReadRecord>& records) {
  std::vector<PeerGroup> out;
  for (const ReadRecord& record : records) {
    for (const Contest& contest : ContestsOf(record.summary)) {
      const std::set<std::string> peers = PeersOf(contest);
      PeerGroup* group = FindIn(out, [&](const PeerGroup& each) {
        return each.in_8_bits == contest.in_8_bits && each.peers == peers;
      });
      if (group == nullptr) group = &*out.insert(out.end(), {contest.in_8_bits, peers, {}});
      std::vector<Contest>& contests = group->contests;
      Contest* same = FindIn(
          contests, [&](const Contest& other) { return other.shape->name == contest.shape->name; });
      if (same == nullptr) {
        contests.push_back(contest);
      } else if (IsNewer(*contest.summary, *same->summary)) {
        *same = contest;
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const PeerGroup& a, const PeerGroup& b) {
    return std::tuple(!a.in_8_bits, a.peers.size(), a.contests.size()) >
           std::tuple(!b.in_8_bits, b.peers.size(), b.contests.size());
  });
  return out;
}

std::string AloneSentence(const PeerGroup& group, std::string_view gpu) {
  GeometricMean fastest;
  GeometricMean library;
  std::vector<double> ratios;
  for (const Contest& contest : group.contests) {
    ratios.push_back(*contest.OverBest(contest.fastest)->time.value);
    fastest.Add(ratios.back());
    if (const summary::OverPeer* over = contest.OverBest(contest.library)) {
      library.Add(*over->time.value);
    }
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return Cat("On ", gpu, ", the fastest variant of each problem",
             group.in_8_bits ? " with products in 8 bits" : "", " is **",
             FormatRatio(fastest.value()), "** over the best of ",
             JoinWords({group.peers.begin(), group.peers.end()}), " (geometric mean of ",
             Count(fastest.n(), "problem"), ", ", FormatRatio(*least), " to ", FormatRatio(*most),
             ")",
             // A mean over some of the problems would not stand beside one over all.
             library.n() < fastest.n()
                 ? ""
                 : Cat(", and the library's own choice **", FormatRatio(library.value()), "** (",
                       Count(library.n(), "problem"), ")"),
             ". Each contender ran alone, at the clock that its own power allows. ");
}

std::string AloneSection(const std::vector<PeerGroup>& groups) {
  std::string out = Cat("## Each alone\n\n", kAlone, "\n\n");
  for (const PeerGroup& group : groups) {
    if (groups.size() > 1) {
      Append(&out, "### Beside ", JoinWords({group.peers.begin(), group.peers.end()}),
             group.in_8_bits ? ", in 8 bits" : "", "\n\n");
    }
    if (group.in_8_bits) Append(&out, kIn8Bits, "\n\n");
    Append(&out, ChoicesTable(group.contests), "\n", PeersTable(group.contests), "\n",
           ContestsTable(group.contests, groups), "\n");
  }
  return out;
}

}  // namespace warpledger::report
