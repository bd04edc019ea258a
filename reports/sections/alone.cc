// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "reports/model/derived/beside_peers.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

std::string Rounded(const std::optional<double>& value, int digits) {
  return value ? FormatSignificant(*value, digits) : std::string(kNone);
}

void AddContender(const Shape& shape, const std::string& name, const summary::Times& times,
                  const std::optional<summary::Alone>& alone, std::vector<std::string> over,
                  Table* table) {
  const std::optional<double>& us = times.p50_us.value;
  std::vector<std::string> row = {Code(shape.name),
                                  name,
                                  FormatUs(us),
                                  us ? FormatTflops(TeraflopsPerS(shape, *us)) : std::string(kNone),
                                  Rounded(alone ? alone->sm_mhz : std::nullopt, 4),
                                  Rounded(alone ? alone->watts : std::nullopt, 3),
                                  Rounded(alone ? alone->joules.value : std::nullopt, 3),
                                  MegajoulesPerExaflop(shape, alone)};
  for (std::string& cell : over) row.push_back(std::move(cell));
  table->AddRow(std::move(row));
}

std::string ContendersTable(const Summary& summary) {
  const std::vector<std::string> peers = PeerNames(summary);
  Table table(
      "problem | contender | p50 µs: | TFLOP/s: | SM clock, MHz: | W: | J per call: | "
      "MJ per exaFLOP:");
  for (const std::string& name : peers) table.AddColumn(Cat("over ", PeerName(name), ":"));
  for (const Shape& shape : summary.shapes) {
    for (const Cell& cell : summary.cells) {
      if (cell.shape != shape.name || !IsOurs(summary, cell)) continue;
      std::vector<std::string> over;
      for (const std::string& name : peers) {
        const summary::OverPeer* one = OverPeerOf(cell, name);
        const Peer* peer = RankedPeer(summary, name, shape);
        over.push_back(one == nullptr || (peer != nullptr && !AreLike(cell, *peer))
                           ? std::string(kNone)
                           : RatioWithInterval(one->time));
      }
      AddContender(shape, Code(cell.variant), cell, cell.alone, std::move(over), &table);
    }
    for (const std::string& name : peers) {
      const Peer* peer = RankedPeer(summary, name, shape);
      if (peer != nullptr) AddContender(shape, PeerName(name), *peer, peer->alone, {}, &table);
    }
  }
  return table.ToMarkdown();
}

std::string ClaimsTable(const Summary& summary) {
  Table table(
      "technique | problem | base | candidate | time: | verdict on time | joules: | verdict on "
      "joules");
  for (const Verdict& verdict : summary.verdicts) {
    table.AddRow({Code(verdict.toggle), Code(verdict.shape), Code(verdict.base),
                  Code(verdict.candidate), RatioWithInterval(verdict.ratio),
                  Cat("**", verdict.verdict, "**"),
                  verdict.energy ? RatioWithInterval(verdict.energy->ratio) : std::string(kNone),
                  verdict.energy ? Cat("**", verdict.energy->verdict, "**") : std::string(kNone)});
  }
  return table.empty() ? "" : table.ToMarkdown();
}

// The answer that stands first.
std::string AloneAnswer(const Summary& summary) {
  const std::vector<Contest> contests = ContestsOf(summary);
  std::string out;
  for (const bool in_8_bits : {false, true}) {
    GeometricMean time;
    GeometricMean joules;
    for (const Contest& contest : contests) {
      if (contest.in_8_bits != in_8_bits) continue;
      const summary::OverPeer& over = *contest.OverBest(contest.fastest);
      time.Add(*over.time.value);
      if (over.joules && over.joules->value) joules.Add(*over.joules->value);
    }
    if (time.n() == 0) continue;
    Append(&out, "Our fastest variant over the best peer", in_8_bits ? ", both in 8 bits" : "",
           ": **", FormatRatio(time.value()), "** in time (geometric mean of ",
           Count(time.n(), "problem"), ")");
    if (joules.n() > 0) Append(&out, ", **", FormatRatio(joules.value()), "** in joules");
    out += ". ";
  }
  const auto count = [&](std::string_view name, auto of) {
    return std::count_if(summary.verdicts.begin(), summary.verdicts.end(),
                         [&](const Verdict& verdict) { return of(verdict) == name; });
  };
  const auto of_time = [](const Verdict& verdict) { return verdict.verdict; };
  const auto of_joules = [](const Verdict& verdict) {
    return verdict.energy ? verdict.energy->verdict : "";
  };
  std::vector<std::string> found;
  for (const std::string_view name : kVerdictNames) {
    const int64_t in_time = count(name, of_time);
    const int64_t in_joules = count(name, of_joules);
    if (in_time + in_joules > 0) {
      found.push_back(Cat(name, " ", in_time, " in time and ", in_joules, " in joules"));
    }
  }
  if (!found.empty()) Append(&out, "Verdicts: ", JoinWords(found), ".");
  return Cat(out, "\n");
}

// Whether the host kept the GPU at work.
std::string StarvedText(const Summary& summary) {
  const summary::Provenance& of = summary.provenance;
  if (!of.starved_visits) return "";
  std::string out = "\nNo visit is INVALID. ";
  if (*of.starved_visits > 0) {
    out = Cat("\n**INVALID, and left out of all figures: ", *of.starved_visits, " of ",
              Count(of.n_samples, "visit"), "**. ");
  }
  Append(&out, "The GPU waited for the host for at most ",
         FormatSignificant(100 * of.idle_share_p50.value_or(0), 2),
         "% of the window in the median visit and ",
         FormatSignificant(100 * of.idle_share_max.value_or(0), 2), "% in the worst; ",
         FormatSignificant(100 * ablations::Sample::kMostIdle, 1), "% is allowed.\n");
  return out;
}

}  // namespace

std::string AloneSection(const Summary& summary) {
  const ablations::AlonePlan& plan = *summary.provenance.alone;
  std::string out =
      Cat(AloneAnswer(summary), "\n## Contenders\n\n", ContendersTable(summary), "\n");
  if (const std::string claims = ClaimsTable(summary); !claims.empty()) {
    Append(&out, "## Claims\n\n", claims, "\n");
  }
  Append(
      &out, "## How to read this page\n\nEach contender ran by itself, replay after replay: ",
      FormatSignificant(plan.settle_s, 2), " s before it was timed and at least ",
      FormatSignificant(plan.window_s, 2),
      " s while it was. Its clock is therefore the one that its own power allows. Rounds change "
      "direction: each second round is the mirror of the one before. Ratios are base / candidate "
      "or peer / ours: above 1 the candidate, or ours, is better. Intervals are for this board. "
      "The SM clock is the mean of the SMs' own counters, for peers too. Watts are the joules "
      "between two steps of NVML's energy counter, divided by the time between them");
  if (const std::optional<double>& ratio = summary.provenance.energy_over_power) {
    Append(&out, ": in the median ", FormatRatioNumber(ratio),
           " times NVML's reading of the power at a visit's end");
  }
  Append(&out, " ([0045](../decisions/0045-each-alone.md)).\n");
  Append(&out, StarvedText(summary));
  return out;
}

}  // namespace warpledger::report
