// SPDX-License-Identifier: Apache-2.0
// The sections that hold the measurements: ladder, peers, floors, controls,
// toggles, and how and where they were made.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/beside_peers.h"
#include "reports/model/derived/budget.h"
#include "reports/model/derived/code_change.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

constexpr size_t kMostOpcodes = 6;
constexpr size_t kMostOpcodesInLadder = 2;  // whose rows have much else to say

double PriorUs(const Summary& summary, const Cell& cell) {
  if (cell.variant == sdpa::kBaseline.id) return sdpa::kBaseline.prior.p50_us;
  const ablations::Claim* claim = summary.FindClaim(cell.toggle);
  return claim != nullptr ? claim->prior_us : 0;
}

// Below the ladder's tables: why a row has no rank.
std::string NotesOn(const Summary& summary, const Shape& shape) {
  std::string out;
  for (const Cell* cell : summary.Ladder(shape.name)) {
    const Verdict* verdict = summary.FindVerdict(cell->variant, shape.name);
    const std::string& reason =
        verdict != nullptr && !verdict->reason.empty() ? verdict->reason : cell->reason;
    if (!reason.empty()) Append(&out, "- ", Code(StepId(*cell)), ": ", reason, "\n");
  }
  return out.empty() ? "" : Cat("\n", out);
}

std::string LadderTable(const Summary& summary, const Shape& shape) {
  // The notes' figures belong to their own mission shape; in another shape's
  // table they would be a comparison of two problems.
  bool has_prior = false;
  if (shape.name == "b1_h8_s512_d64") {
    for (const Cell* cell : summary.Ladder(shape.name)) has_prior |= PriorUs(summary, *cell) > 0;
  }
  const std::string ci = FormatPercent(summary.statistics.confidence) + " CI, µs";
  Table table(Cat("step | p50, µs: | ", ci,
                  ": | over the step before: | over the first: | TFLOP/s: | registers / thread: | "
                  "shared, KiB / CTA: | spills, B: | CTAs / SM: | instructions, step before → this "
                  "| correct (max error) | verdict"));
  if (has_prior) table.AddColumn("L4 notes, p50 µs on an L4:");
  for (const Cell* cell : summary.Ladder(shape.name)) {
    const Verdict* verdict = summary.FindVerdict(cell->variant, shape.name);
    const bool ranked = summary.IsRanked(*cell);
    std::vector<std::string> row = {Cat(StepLabel(*cell), " ", Code(StepId(*cell))),
                                    FormatUs(cell->p50_us.value),
                                    FormatUsInterval(cell->p50_us.low, cell->p50_us.high),
                                    StepSpeedup(summary, *cell, verdict, /*with_interval=*/true),
                                    GainOverFirst(summary, *cell),
                                    ranked ? FormatTflops(cell->tflops) : std::string(kNone),
                                    FormatInteger(cell->registers),
                                    FormatKib(cell->smem_bytes),
                                    FormatInteger(cell->spill_bytes),
                                    FormatInteger(cell->ctas_per_sm),
                                    verdict != nullptr
                                        ? InstructionChange(summary, *verdict, kMostOpcodesInLadder)
                                        : std::string(kNone),
                                    CorrectCell(*cell),
                                    VerdictCell(*cell, verdict)};
    if (has_prior) {
      const double prior = PriorUs(summary, *cell);
      row.push_back(prior > 0 ? FormatUs(prior) : std::string(kNone));
    }
    table.AddRow(row);
  }
  std::string out = table.ToMarkdown();
  if (has_prior) {
    out +=
        "\nThe last column quotes the L4 notes, an earlier attempt at this ladder "
        "(`reports/decisions/0000-l4-notes.md`). Those times are of another GPU (an L4) and other "
        "code, so compare only the direction of each step, not the times.\n";
  }
  return out;
}

std::string ToggleParagraph(const Summary& summary, const std::string& toggle) {
  const ablations::Claim* claim = summary.FindClaim(toggle);
  std::string out = Cat("### ", claim != nullptr ? std::string(claim->label) : Code(toggle), " (",
                        Code(toggle), ")\n\n");
  if (claim == nullptr) {
    out +=
        "This build's registry does not have this toggle, so its claim and prediction are not "
        "shown.\n\n";
  } else {
    const ablations::ClaimPrediction& predicted = claim->predicted;
    Append(&out, "**Claim.** ", claim->mechanism, "\n\n");
    const auto& [source, link] = claim->source;
    if (!source.empty()) Append(&out, "**Source of the claim.** [", source, "](", link, ").\n\n");
    if (predicted.high > 0) {
      const Verdict* verdict =
          FindToggleVerdict(summary, toggle, sdpa::ShownName(predicted.problem));
      const Range range = PredictedRange(predicted, verdict);
      Append(&out, "**Prediction.** ", FormatLimit(range.low), " to ", FormatLimit(range.high),
             " at ", Code(sdpa::ShownName(predicted.problem)), ". ",
             predicted.blind ? "" : "Written after prototypes had run. ", predicted.why, " ",
             PredictionOutcome(predicted, verdict), "\n\n");
    }
    if (!claim->prior.empty()) Append(&out, "**Prior.** ", claim->prior, ".\n\n");
    if (!claim->lesson.empty()) Append(&out, "**Lesson.** ", claim->lesson, ".\n\n");
  }
  Table table(Cat("shape | against | ratio: | ",
                  summary.TellsOtherBoards() ? "boards of the kind: | " : "",
                  "this board: | confidence: | gate: | pairs: | verdict | ", kResourceColumn, " | ",
                  kInstructionColumn, " | remark"));
  for (const Shape* shape : ShapesMainFirst(summary)) {
    const Verdict* verdict = FindToggleVerdict(summary, toggle, shape->name);
    if (verdict == nullptr) continue;
    const std::string remark = Remark(*verdict);
    std::vector<std::string> row = {Code(shape->name), Code(verdict->base),
                                    FormatRatio(verdict->ratio.value),
                                    FormatRatioInterval(verdict->ratio.low, verdict->ratio.high)};
    if (summary.TellsOtherBoards()) {
      row.push_back(FormatRatioInterval(verdict->this_board_low, verdict->this_board_high));
    }
    row.insert(row.end(),
               {verdict->adjusted_confidence ? FormatPercent(*verdict->adjusted_confidence)
                                             : std::string(kNone),
                FormatLimit(verdict->gate), FormatInteger(verdict->n_pairs),
                Cat("**", verdict->verdict, "**"), ResourceChange(*verdict),
                InstructionChange(summary, *verdict, kMostOpcodes),
                remark.empty() ? std::string(kNone) : remark});
    table.AddRow(row);
  }
  return out + table.ToMarkdown();
}

// Of the controls' intervals that leave out 1: where, by how much, and what hangs on it.
std::string MissedControls(const Summary& summary) {
  int64_t missed = 0;
  double most = 0;
  std::vector<std::string> shapes;
  for (const Control& control : summary.controls) {
    if (control.holds_one || !control.ratio.low || !control.ratio.high) continue;
    ++missed;
    most = std::max({most, *control.ratio.low - 1, 1 - *control.ratio.high});
    AddOnce(Code(control.shape), &shapes);
  }
  if (missed == 0) return "";
  const double delta = summary.statistics.neutral_delta;
  return Cat(
      "\n",
      missed == 1 ? "The one interval that leaves" : Cat("The ", missed, " intervals that leave"),
      " out 1, at ", JoinWords(shapes), ", ", missed == 1 ? "misses" : "miss", " it by ",
      missed == 1 ? "" : "at most ", FormatSignificant(100 * most, 1), "%. ",
      most < delta / 2 ? Cat("That is far inside the neutral zone of ±", FormatPercent(delta),
                             ", so it changes no verdict; but the interval is too narrow there.")
                       : std::string("That is as large as effects that verdicts decide."),
      "\n");
}

}  // namespace

std::string LadderSection(const Summary& summary) {
  std::string out = "## The ladder, shape by shape\n";
  for (const Shape* shape : ShapesMainFirst(summary)) {
    Append(&out, "\n### ", Code(shape->name), "\n\n", DescribeShape(*shape), ".\n\n",
           LadderTable(summary, *shape), NotesOn(summary, *shape));
  }
  return out;
}

std::string CompactLadder(const Summary& summary, const Shape& shape) {
  Table table("step | p50, µs: | over the step before: | over the first: | verdict");
  for (const Cell* cell : summary.Ladder(shape.name)) {
    const Verdict* verdict = summary.FindVerdict(cell->variant, shape.name);
    table.AddRow({StepLabel(*cell), FormatUs(cell->p50_us.value),
                  StepSpeedup(summary, *cell, verdict, /*with_interval=*/true),
                  GainOverFirst(summary, *cell), VerdictCell(*cell, verdict)});
  }
  return table.ToMarkdown();
}

std::string PeerSection(const Summary& summary) {
  std::string out = "## Peers\n\n";
  if (summary.peers.empty()) return out + "The record has no peer.\n";
  out +=
      "Peers run in their own process between ours, so their samples are not paired with ours. The "
      "ratio is a ratio of medians: above 1× our last step is faster. Its bounds are the most "
      "extreme ratios that the two intervals allow.";
  const bool has_flash = std::any_of(summary.peers.begin(), summary.peers.end(),
                                     [](const Peer& p) { return PeerName(p.name) == "flash"; });
  if (has_flash) {
    out += " `flash` is the FlashAttention-2 in PyTorch, not FlashAttention-3.";
  }
  out += "\n";
  for (const Shape* shape : ShapesMainFirst(summary)) {
    Table table(Cat("peer | version | p50, µs: | ", FormatPercent(summary.statistics.confidence),
                    " CI, µs: | ours over the peer: | correct | remark"));
    const Cell* ours = summary.LastStep(shape->name);
    for (const Peer& peer : summary.peers) {
      if (peer.shape != shape->name) continue;
      std::string ratio(kNone);
      const bool comparable =
          ours != nullptr && peer.available && peer.correct == true && AreLike(*ours, peer);
      if (comparable && peer.p50_us.value) {
        ratio = FormatRatio(*peer.p50_us.value / *ours->p50_us.value);
        if (peer.p50_us.low && peer.p50_us.high && ours->p50_us.low && ours->p50_us.high) {
          Append(&ratio, " ",
                 FormatRatioInterval(*peer.p50_us.low / *ours->p50_us.high,
                                     *peer.p50_us.high / *ours->p50_us.low));
        }
      }
      table.AddRow({PeerName(peer.name), peer.version.empty() ? std::string(kNone) : peer.version,
                    FormatUs(peer.p50_us.value),
                    FormatUsInterval(peer.p50_us.low, peer.p50_us.high), ratio,
                    !peer.correct   ? "not checked"
                    : *peer.correct ? "yes"
                                    : "**no**",
                    !peer.available && peer.reason.empty() ? "not available"
                    : peer.reason.empty()                  ? std::string(kNone)
                                                           : peer.reason});
    }
    if (table.empty()) continue;
    Append(&out, "\n### Peers at ", Code(shape->name), "\n\n");
    if (ours != nullptr) {
      Append(&out, "Ours: ", Code(StepId(*ours)), ", ", FormatUs(ours->p50_us.value), " µs ",
             FormatUsInterval(ours->p50_us.low, ours->p50_us.high), ".\n\n");
    } else {
      out += "No step of ours is ranked here.\n\n";
    }
    out += table.ToMarkdown();
  }
  return out;
}

std::string FloorSection(const Summary& summary) {
  const std::optional<Rates> rates = ArithmeticRates(summary.gpu, summary.provenance.gpu.sm_count,
                                                     summary.provenance.gpu.max_sm_clock_mhz);
  Table table("shape | empty kernel, p50 µs:");
  if (rates) {
    for (const char* title : {"tensor cores, µs", "DRAM, µs", "exponentials, µs",
                              "largest of the three, µs", "last step / largest"}) {
      table.AddColumn(Cat(title, ":"));
    }
  }
  for (const Shape* shape : ShapesMainFirst(summary)) {
    const Floor* empty = summary.FindFloor(shape->name);
    std::vector<std::string> row = {Code(shape->name), std::string(kNone)};
    if (empty != nullptr) {
      row[1] = FormatUs(empty->p50_us.value);
      if (empty->p50_us.low && empty->p50_us.high) {
        Append(&row[1], " ", FormatUsInterval(empty->p50_us.low, empty->p50_us.high));
      }
    }
    if (rates) {
      const ArithmeticFloor floor = FloorOf(*shape, *rates);
      const Cell* last = summary.LastStep(shape->name);
      for (double us : {floor.tensor_us, floor.dram_us, floor.exp_us, floor.largest_us}) {
        row.push_back(FormatSignificant(us, 2));
      }
      row.push_back(last == nullptr || floor.largest_us <= 0
                        ? std::string(kNone)
                        : FormatSignificant(*last->p50_us.value / floor.largest_us, 2) + "×");
    }
    table.AddRow(row);
  }
  std::string out =
      Cat("## Floors\n\nThe time of an empty kernel is the cost of a launch alone. ",
          rates ? "The other columns are computed: operations, bytes and exponentials of the shape "
                  "divided by the GPU's rates. The DRAM time assumes that no input is in L2 yet"
                : Cat("Arithmetic floors are left out: this build has no rates for ",
                      Code(summary.gpu), ", or the record has no clock"),
          rates ? Cat("; this record's cache mode is `", summary.provenance.cache, "`.") : ".",
          "\n\n", table.ToMarkdown());
  if (rates) Append(&out, "\n", rates->source, "\n");
  return out;
}

std::string ControlSection(const Summary& summary) {
  std::string out = "## Controls\n\n";
  out +=
      "Controls are comparisons whose true ratio is 1. The `aa` control compares the base with "
      "itself under another name. A verdict on a control other than `NEUTRAL` or `INCONCLUSIVE` is "
      "false.";
  for (const ablations::Claim& claim : summary.subject->claims()) {
    if (claim.control) Append(&out, " ", Code(claim.id), ": ", claim.mechanism);
  }
  Append(&out, "\n\n**", ControlSentence(summary), "**\n");
  if (summary.controls.empty()) return out;
  Table table(Cat("control | shape | ratio: | ", FormatPercent(summary.statistics.confidence),
                  " interval, this board: | contains 1 | verdict from samples alone | verdict | "
                  "false"));
  for (const Control& control : summary.controls) {
    table.AddRow({Code(control.candidate), Code(control.shape), FormatRatio(control.ratio.value),
                  FormatRatioInterval(control.ratio.low, control.ratio.high),
                  control.holds_one ? "yes" : "**no**", control.timing_verdict,
                  Cat("**", control.verdict, "**"), control.false_verdict ? "**yes**" : "no"});
  }
  return Cat(out, "\n", table.ToMarkdown(), MissedControls(summary));
}

std::string ToggleSection(const Summary& summary) {
  const std::string_view file = summary.subject->ClaimsFile();
  std::string out = Cat("## Toggle by toggle\n\nClaims and predictions come from the registry",
                        file.empty() ? "" : Cat(" (", Code(file), ")"),
                        ". Predictions were written before the first run, unless the text says "
                        "that prototypes had run.\n");
  for (const std::string& toggle : StepToggles(summary)) {
    Append(&out, "\n", ToggleParagraph(summary, toggle));
  }
  return out;
}

std::string StatisticsSection(const Summary& summary) {
  const Statistics& s = summary.statistics;
  const Provenance& p = summary.provenance;
  std::string out = Cat(
      "## How the statistics were made\n\nEvery block times each variant once, in random order. "
      "Samples of one process, shape and block are paired, and a verdict rests on the log-ratios "
      "of these pairs. ",
      p.blocks_missing > 0 ? "The plan was " : "The run had ", Processes(p.processes), " of ",
      Count(p.blocks_per_process, "block"), " per shape",
      p.blocks_missing > 0 ? Cat("; ", p.blocks_planned - p.blocks_missing, " of ",
                                 Count(p.blocks_planned, "block"), " are there")
                           : "",
      ". The interval of a time is ",
      s.interval.empty() ? "a cluster bootstrap over processes and blocks" : s.interval, ", from ",
      s.bootstrap_resamples, " resamples (seed ", s.bootstrap_seed, ") at ",
      FormatPercent(s.confidence), ".\n\n",
      summary.TellsOtherBoards()
          ? "A verdict has two intervals. *This board* is the effect in this run's conditions; "
            "another run on this board can differ by more. *Boards of the kind* says what a record "
            "of another board would show; verdicts rest on this interval. The spread between "
            "boards is estimated from all records together"
          : "The interval of a verdict is for this board: the effect in this run's conditions. "
            "Another run on this board can differ by more, and so can another board: the spread "
            "between boards is not known here",
      " (`reports/decisions/0036-boards-of-a-kind.md`). Verdicts compare times; at the power limit "
      "they compare SM cycles, which are times at equal clocks "
      "(`reports/decisions/0006-power-capped.md`). The ",
      s.family_size,
      " verdicts form families: one family per toggle, over all its levels and shapes. Their level "
      "is "
      "set by ",
      s.correction, ": of the intervals of a family that decide, at most ",
      FormatPercent(1 - s.confidence),
      " are expected to miss (`reports/decisions/0002-verdict-intervals.md`). `NEUTRAL` means that "
      "two one-sided tests put the effect within ±",
      FormatPercent(s.neutral_delta), ".");
  if (p.throttled_samples) {
    const int64_t readable = p.n_samples - p.unknown_throttle_samples;
    Append(&out, " ", *p.throttled_samples, " of ", readable, " samples",
           p.unknown_throttle_samples > 0 ? " whose throttle reasons were readable" : "",
           " were taken while the GPU was throttled; they are kept and flagged.");
    if (p.unknown_throttle_samples > 0) {
      Append(&out, " Throttle reasons of ", p.unknown_throttle_samples,
             " more samples were not readable.");
    }
  } else if (p.unknown_throttle_samples > 0) {
    out +=
        " Throttle reasons were not readable on this machine, so throttling would not have been "
        "seen.";
  }
  if (p.sm_mhz_p50) {
    Append(&out, " Clocks were not locked: the median SM clock was ",
           FormatSignificant(*p.sm_mhz_p50, 4), " MHz");
    if (p.gpu.max_sm_clock_mhz) {
      Append(&out, " of at most ", FormatSignificant(*p.gpu.max_sm_clock_mhz, 4), " MHz");
    }
    out += ".";
  }
  return out + "\n";
}

namespace {

// A command line without the folders of the machine that it was called on.
std::string WithoutFolders(const std::string& argv) {
  std::vector<std::string> words = absl::StrSplit(argv, ' ');
  for (std::string& word : words) {
    const size_t value = word.rfind("--", 0) == 0 ? word.find('=') + 1 : 0;
    if (value < word.size() && word[value] == '/') {
      word = word.substr(0, value) + word.substr(word.rfind('/') + 1);
    }
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

std::string ProvenanceSection(const Summary& summary) {
  Table table("field | value");
  for (const auto& [key, value] : ProvenanceRows(summary)) {
    // A study's claims are the page's own subject, and its libraries are the machine's folders.
    if (key.starts_with("definition.") && key != "definition.compiler" &&
        key != "definition.study.name") {
      continue;
    }
    const std::string shown = key == "argv" ? WithoutFolders(value) : value;
    table.AddRow({Code(key), shown.empty() ? std::string(kNone) : Code(shown)});
  }
  return Cat("## Provenance\n\n", table.ToMarkdown());
}

}  // namespace warpledger::report
