// SPDX-License-Identifier: Apache-2.0
// The sections that say what was found, before any table of measurements.

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/sdpa/problem/shapes.h"
#include "reports/model/arm_names.h"
#include "reports/model/derived/code_change.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/derived/verdict_pictures.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

// How the predictions fared at the shapes that they speak of.
std::string PredictionSentence(const Summary& summary) {
  std::vector<std::string> low;
  std::vector<std::string> high;
  int held = 0;
  int judged = 0;
  for (const std::string& toggle : StepToggles(summary)) {
    const ablations::Claim* claim = summary.FindClaim(toggle);
    if (claim == nullptr) continue;
    const Verdict* verdict =
        FindToggleVerdict(summary, toggle, sdpa::ShownName(claim->predicted.problem));
    if (verdict == nullptr || !verdict->prediction_held || !HasMeaning(*verdict)) continue;
    ++judged;
    switch (MissOf(*verdict, PredictedRange(claim->predicted, verdict))) {
      case Miss::kNone:
        ++held;
        break;
      case Miss::kLow:
        low.push_back(Code(toggle));
        break;
      case Miss::kHigh:
        high.push_back(Code(toggle));
        break;
      case Miss::kUnknown:
        break;
    }
  }
  if (judged == 0) return "No prediction could be judged.";
  std::string out = Cat(held, " of ", Count(judged, "prediction"), " held");
  if (!low.empty()) Append(&out, "; ", JoinWords(low), " missed low");
  if (!high.empty()) Append(&out, "; ", JoinWords(high), " missed high");
  return out + ".";
}

// Toggle against shape: ratio and verdict in one table.
std::string VerdictMatrix(const Summary& summary) {
  Table table("step adds");
  for (const Shape& shape : summary.shapes) table.AddColumn(Code(shape.name));
  for (const std::string& toggle : StepToggles(summary)) {
    std::vector<std::string> row = {Code(toggle)};
    for (const Shape& shape : summary.shapes) {
      const Verdict* verdict = FindToggleVerdict(summary, toggle, shape.name);
      if (verdict == nullptr) {
        row.emplace_back(kNone);
      } else if (verdict->ratio.value) {
        row.push_back(Cat(FormatRatio(verdict->ratio.value), " ", verdict->verdict));
      } else {
        row.push_back(verdict->verdict);
      }
    }
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

std::string StandingsTable(const Summary& summary) {
  Table table(
      "shape | first step, µs: | fastest step | its p50, µs: | over the first: | best peer | its "
      "p50, µs: | ours over the peer:");
  for (const Shape& shape : summary.shapes) {
    const std::vector<const Cell*> ladder = summary.Ladder(shape.name);
    const Cell* fastest = summary.FastestStep(shape.name);
    const Peer* peer = summary.FastestPeer(shape.name);
    std::vector<std::string> row(8, std::string(kNone));
    row[0] = Code(shape.name);
    if (!ladder.empty() && summary.IsRanked(*ladder[0])) row[1] = FormatUs(ladder[0]->p50_us.value);
    if (fastest != nullptr) {
      row[2] = Code(StepId(*fastest));
      row[3] = FormatUs(fastest->p50_us.value);
      row[4] = FormatRatio(GainOf(*fastest).value);
    }
    if (peer != nullptr) {
      row[5] = PeerName(peer->name);
      row[6] = FormatUs(peer->p50_us.value);
    }
    if (fastest != nullptr && peer != nullptr) {
      row[7] = FormatRatio(*peer->p50_us.value / *fastest->p50_us.value);
    }
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

}  // namespace

std::string WarningSection(const Summary& summary, const Staleness& staleness) {
  std::string out;
  const Provenance& p = summary.provenance;
  const auto unfinished = [](int64_t missing, int64_t planned) {
    return Cat(planned - missing, " of ", Count(planned, "block"));
  };
  if (p.blocks_missing > 0 || p.peer_blocks_missing > 0) {
    Append(&out, "> **Warning: this record is unfinished: ",
           unfinished(p.blocks_missing, p.blocks_planned), "** (", p.processes_found, " of ",
           Processes(p.processes), ")");
    if (p.peer_blocks_missing > 0) {
      Append(&out, ", and ", unfinished(p.peer_blocks_missing, p.peer_blocks_planned),
             " of the peers");
    }
    out +=
        ". The same call of `warpledger run` measures the missing blocks. Until then intervals are "
        "wider than planned, and variants without samples have no verdict.\n";
  }
  if (staleness.IsStale()) {
    Append(&out, out.empty() ? "" : ">\n",
           "> **Warning: this record is older than the kernels.** Since it was made, ",
           WhatChanged(staleness),
           ". Figures of these are of older code than this tree's. Run the ",
           summary.design == "ladder" ? "ladder" : "design", " again to renew them.\n");
  }
  if (summary.provenance.git.dirty) {
    Append(&out, out.empty() ? "" : ">\n",
           "> The record was made from a working tree with uncommitted changes; its commit "
           "alone does not reproduce it.\n");
  }
  return out;
}

std::string ProgressSentence(const Summary& summary, const Shape& shape) {
  const std::vector<const Cell*> ladder = summary.Ladder(shape.name);
  const Cell* fastest = summary.FastestStep(shape.name);
  if (fastest == nullptr) {
    return Cat("At ", Code(shape.name), " no step passed correctness and was timed.");
  }
  std::string out = Cat("At ", Code(shape.name), " the fastest step is ", Code(StepId(*fastest)),
                        " at ", FormatUs(fastest->p50_us.value), " µs");
  if (fastest != ladder[0] && summary.IsRanked(*ladder[0]) && GainOf(*fastest).value) {
    Append(&out, ", ", FormatRatio(GainOf(*fastest).value), " ",
           FormatRatioInterval(GainOf(*fastest).low, GainOf(*fastest).high),
           " over the first step (", FormatUs(ladder[0]->p50_us.value), " µs)");
  }
  out += ".";
  if (const Peer* peer = summary.FastestPeer(shape.name); peer != nullptr) {
    const double ours = *fastest->p50_us.value;
    const double theirs = *peer->p50_us.value;
    Append(&out, " The best peer, ", PeerName(peer->name), ", takes ", FormatUs(theirs), " µs: ",
           ours >= theirs
               ? Cat("it is ", FormatRatio(ours / theirs), " faster than our fastest step.")
               : Cat("our fastest step is ", FormatRatio(theirs / ours), " faster."));
  }
  return out;
}

std::string VerdictSentences(const Summary& summary, const Shape& shape) {
  std::string out;
  for (std::string_view name : kVerdictNames) {
    std::vector<std::string> steps;
    for (const Verdict& verdict : summary.verdicts) {
      if (verdict.shape != shape.name || verdict.verdict != name) continue;
      // A toggle that was judged more than once goes by its levels, and by its base where these are
      // the same too.
      const auto is_alone = [&](auto text) {
        return std::count_if(summary.verdicts.begin(), summary.verdicts.end(),
                             [&](const Verdict& other) {
                               return other.shape == verdict.shape && text(other) == text(verdict);
                             }) == 1;
      };
      Verdict named = verdict;
      if (!is_alone([](const Verdict& each) { return each.toggle; })) {
        const auto text = [&](const Verdict& each) { return ClaimText(summary, each); };
        named.toggle = text(verdict);
        if (named.toggle.empty()) named.toggle = verdict.toggle;
        if (!is_alone(text)) Append(&named.toggle, " on ", ArmName(summary, verdict.base));
      }
      steps.push_back(NamedRatio(named));
    }
    if (steps.empty()) continue;
    Append(&out, "- **", name, "** (", VerdictMeaning(name), "), ",
           Count(static_cast<int64_t>(steps.size()), "step"), ": ", JoinWords(steps), ".\n");
  }
  return out;
}

std::string SummarySection(const Summary& summary) {
  const Shape& main = summary.MainShape();
  std::string out = Cat("## Summary\n\n", ProgressSentence(summary, main), " ",
                        PredictionSentence(summary), " ", ControlSentence(summary), "\n");
  const std::string verdicts = VerdictSentences(summary, main);
  if (!verdicts.empty()) {
    Append(&out, "\nVerdict on each step at ", Code(main.name), ":\n\n", verdicts);
  }
  Append(&out, "\nFirst step, fastest step and best peer at each shape:\n\n",
         StandingsTable(summary));
  if (!summary.verdicts.empty()) {
    Append(&out, "\nAll verdicts (ratio over the step before):\n\n", VerdictMatrix(summary));
  }
  return out;
}

std::string UndecidedSection(const Summary& summary) {
  Table table("without it | with it | shape | ratio: | boards: | processes on one board:");
  for (const Verdict& verdict : summary.verdicts) {
    if (verdict.verdict != "INCONCLUSIVE") continue;
    const auto number = [](const std::optional<int64_t>& count) {
      return count ? Cat(*count) : std::string(kNone);
    };
    table.AddRow({Code(verdict.base), Code(verdict.candidate), Code(verdict.shape),
                  RatioWithInterval(verdict.ratio), number(verdict.boards_to_decide),
                  verdict.n_processes == 1 ? "2 at least" : number(verdict.processes_to_decide)});
  }
  if (table.empty()) return "";
  return Cat(
      "## What would decide the rest\n\nEach row is an `INCONCLUSIVE` verdict. It would be decided "
      "if its ratio were measured again on this number of boards, or in this number of processes "
      "on one board. “",
      kNone,
      "”: no number that was tried would decide it, because boards, or runs, differ by more than "
      "the effect, or because the spread between boards is not known.\n\n",
      table.ToMarkdown());
}

std::string HowToReadSection(const Summary& summary) {
  const std::string delta = FormatPercent(summary.statistics.neutral_delta);
  return Cat(
      "## How to read it\n\n"
      "- A **ratio** is time(before) / time(after): above 1 is faster. `p50` is the median time of "
      "one kernel call. At the power limit a ratio compares SM cycles, which are times at equal "
      "clocks; its remark says so.\n"
      "- **Intervals** of times are at ",
      FormatPercent(summary.statistics.confidence), ". The interval of a verdict says what ",
      summary.TellsOtherBoards() ? "another board of the kind would measure"
                                 : "this board measures in the conditions of this run",
      ", at the level of its claim's family. A step **passes its gate** if the lower end of that "
      "interval does.\n"
      "- **Verdicts**: `ADOPT` lower end at or above the gate and correct; `REAL_BELOW_GATE` lower "
      "end above 1; `NEUTRAL` within ±",
      delta,
      "; `REGRESSION` upper end below 1; `INCONCLUSIVE` otherwise; `BROKEN` wrong results, timed "
      "but never ranked; `INVALID` throttled, drifting or not in the machine code; "
      "`NOT_APPLICABLE` with its reason. “",
      kNone, "”: the record has no such figure.\n- ", kHowToReadChanges, "\n");
}

std::string PictureSection(const Summary& summary, std::string_view picture_prefix) {
  const std::string_view main = summary.MainShape().name;
  const auto picture = [&](std::string_view name) {
    return PicturePath(summary, picture_prefix, name);
  };
  std::string out =
      Cat("## Pictures\n\n![Ladder at ", main, "](", picture(Cat("ladder_", main)),
          ")\n\n![Gain over the first step at each shape](", picture("speedup_overview"), ")\n\n",
          VerdictPictures(summary, picture_prefix, "", "step"));
  std::vector<std::string> others;
  for (const Shape* shape : ShapesMainFirst(summary)) {
    if (shape->name == main) continue;
    others.push_back(Cat("[", Code(shape->name), "](", picture(Cat("ladder_", shape->name)), ")"));
  }
  if (!others.empty()) {
    Append(&out, "\nThe ladder at the other shapes: ", JoinWords(others), ".\n");
  }
  return out;
}

}  // namespace warpledger::report
