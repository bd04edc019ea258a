// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "reports/model/arm_names.h"
#include "reports/model/derived/counters.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

std::string_view EvidenceWords(sdpa::EvidenceChange change) {
  switch (change) {
    case sdpa::EvidenceChange::kNone:
      return "do not change";
    case sdpa::EvidenceChange::kAppears:
      return "appear";
    case sdpa::EvidenceChange::kGrows:
      return "increase in number";
    case sdpa::EvidenceChange::kShrinks:
      return "decrease in number";
    case sdpa::EvidenceChange::kVanishes:
      return "disappear";
    case sdpa::EvidenceChange::kDiffers:
      return "change in number";
    case sdpa::EvidenceChange::kShrinksInLoops:
      return "decrease in number inside loops";
  }
  return "";
}

std::string EvidenceOf(const sdpa::ToggleRow& row) {
  std::vector<std::string> where;
  if (!row.evidence.ptx.empty()) {
    where.push_back(Cat("PTX lines that match ", Code(row.evidence.ptx)));
  }
  if (!row.evidence.sass.empty()) {
    where.push_back(Cat("SASS opcodes that match ", Code(row.evidence.sass)));
  }
  if (where.empty() && !row.evidence.launched.empty()) {
    return Cat("in the list of launches of a call, lines that match ", Code(row.evidence.launched),
               " ", row.evidence.launched_vanishes ? "disappear" : "appear");
  }
  if (where.empty()) return "the machine code differs";
  return Cat(JoinWords(where), " ", EvidenceWords(row.evidence.change), " when it is on");
}

std::string RegimePart(const MeasuredClaim& claim, std::string_view expected) {
  Table table("kind of problem | ratio | verdicts");
  for (const std::string_view regime : kRegimeNames) {
    const auto here = Restricted({claim}, [&](const Judgement& judgement) {
      const Attention* problem = ProblemOf(judgement);
      return problem != nullptr && RegimeOf(*problem) == regime;
    });
    if (here.empty()) {
      if (regime == expected) {
        table.AddRow({Cat("**", regime, "**: expected here"), "not measured", std::string(kNone)});
      }
      continue;
    }
    std::vector<const Verdict*> verdicts;
    for (const Judgement& judgement : here[0].judged) verdicts.push_back(judgement.verdict);
    table.AddRow({regime == expected ? Cat("**", regime, "**: expected here") : std::string(regime),
                  Outcome(here[0]), CountVerdicts(verdicts)});
  }
  return table.ToMarkdown();
}

// The verdict that a prediction speaks of, with the range that it is held against; without one,
// verdict is null. A row's own prediction speaks of places that the judge knows; that of another
// level speaks of its problem wherever it is judged.
struct Tested {
  const Judgement* judgement = nullptr;
  Verdict verdict;
};
Tested TestedBy(const MeasuredClaim& claim, const sdpa::Claim& declared) {
  Tested tested;
  const bool of_row =
      declared.low == claim.row->predicted.low && declared.high == claim.row->predicted.high &&
      claim.from == claim.row->levels.values[0] && claim.to == claim.row->levels.values[1];
  for (const Judgement& judgement : claim.judged) {
    const Verdict& verdict = *judgement.verdict;
    if (judgement.record->summary.provenance.created_utc < sdpa::PredictsSince(declared)) continue;
    if (verdict.shape != declared.problem || (of_row && !verdict.predicted_low)) continue;
    tested = {&judgement, verdict};
    if (verdict.predicted_low || !HasMeaning(verdict) || !verdict.ratio.low) continue;
    tested.verdict.predicted_low = declared.low;
    tested.verdict.predicted_high = declared.high;
    tested.verdict.prediction_held =
        *verdict.ratio.low <= declared.high && *verdict.ratio.high >= declared.low;
  }
  return tested;
}

std::string_view WhenForeseen(sdpa::Foreseen foreseen) {
  switch (foreseen) {
    case sdpa::Foreseen::kBlind:
      return "written before anything of it had run";
    case sdpa::Foreseen::kAfterPrototypes:
      return "written after prototypes had run";
    case sdpa::Foreseen::kFromOtherPairs:
      return "written when both levels had been compared with others, but not with each other";
    case sdpa::Foreseen::kFromRecord:
      return "taken from the interval of an H200's record, because nobody predicted a range before "
             "that record";
  }
  return "";
}

std::string PredictionOf(const MeasuredClaim& claim, const sdpa::Claim& declared) {
  if (declared.low == 0) return "Today's registry declares no such claim.";
  const Tested tested = TestedBy(claim, declared);
  const ablations::ClaimPrediction prediction = {declared.problem, declared.low, declared.high, {}};
  const Range range =
      PredictedRange(prediction, tested.judgement == nullptr ? nullptr : &tested.verdict);
  const bool of_row =
      claim.from == claim.row->levels.values[0] && claim.to == claim.row->levels.values[1];
  const std::string_view since = sdpa::PredictsSince(declared);
  const auto limit = [&](double ratio) {
    return since.empty() ? FormatLimit(ratio) : FormatRatio(ratio);
  };
  std::string out = Cat(limit(range.low), " to ", limit(range.high), " at ", Code(declared.problem),
                        ", ", WhenForeseen(declared.foreseen), ". ",
                        since.empty() ? "" : Cat("It is tested on records since ", since, ". "));
  if (of_row || declared.foreseen == sdpa::Foreseen::kBlind) {
    Append(&out, claim.row->predicted.why, " ");
  }
  if (tested.judgement != nullptr) return out + PredictionOutcome(prediction, &tested.verdict);
  const bool judged_there =
      std::any_of(claim.judged.begin(), claim.judged.end(), [&](const Judgement& judgement) {
        return judgement.verdict->shape == declared.problem &&
               judgement.record->summary.provenance.created_utc >= since;
      });
  // The prediction of a row is for the technique's place in its ladder, or for it alone.
  return Cat(out, "No record ", since.empty() ? "" : "since then ",
             judged_there ? "judges it there in the order that the prediction is for; the verdicts "
                            "at that problem have another baseline."
                          : "judges it at the problem of the prediction.");
}

std::string FamilyOfTests(const MeasuredClaim& claim, const sdpa::Claim& declared) {
  int64_t of_toggle = 0;
  int64_t own = 0;
  for (const Judgement& judgement : claim.judged) {
    ++(judgement.is_step ? of_toggle : own);
  }
  const std::string on_toggle = Cat("all verdicts of one record on ", Code(declared.step_family));
  const std::string on_claim =
      Cat("all verdicts of one record on ", Code(declared.pair_family),
          ", if no step of the design leads from the baseline to the candidate");
  std::vector<std::string> parts;
  if (of_toggle > 0 || own == 0) parts.push_back(on_toggle);
  if (own > 0) parts.push_back(on_claim);
  return Cat(
      absl::StrJoin(parts, "; "),
      ". At most 5% of the intervals that decide are expected to miss (false coverage rate)");
}

// "results": whether the claim to leave every bit was kept.
std::string BitsOf(const MeasuredClaim& claim) {
  if (!sdpa::KeepsBits(*claim.row)) return "compared with FP64; bits may change";
  int64_t checks = 0;
  int64_t same = 0;
  for (const Judgement& judgement : claim.judged) {
    if (!judgement.verdict->same_errors) continue;
    checks += judgement.verdict->same_errors->checks;
    same += judgement.verdict->same_errors->same;
  }
  if (checks == 0) return "every bit should stay the same; no record shows it";
  return Cat(
      "every bit should stay the same: the errors of both variants against FP64 agreed to the "
      "last digit in ",
      same == checks ? "all " : Cat("**only ", same, "** of "), checks, " checks");
}

// "`kv_ring_stages=2` → `kv_ring_stages=3`", as configurations of records spell it.
std::string InRecords(const MeasuredClaim& claim) {
  const auto spelled = [&](int level) {
    const sdpa::ToggleRow& row = *claim.row;
    if (level == row.levels.values[0]) return Cat("without ", Code(row.id));
    if (level == row.levels.values[1]) return Code(row.id);
    return Code(Cat(row.id, "=", level));
  };
  return Cat(spelled(claim.from), " → ", spelled(claim.to));
}

// Where a record quotes it, it has a page.
std::string MicroOf(const std::vector<ReadRecord>& records, const sdpa::ToggleRow& row) {
  if (row.micro.empty()) return "none isolates it";
  const std::string_view benchmark = row.micro.substr(0, row.micro.find('/'));
  const bool quoted = std::any_of(records.begin(), records.end(), [&](const ReadRecord& record) {
    return record.summary.FindMicro(row.micro) != nullptr;
  });
  return quoted ? Cat("[", benchmark, "](../micro/", benchmark, ".md), ", Code(row.micro))
                : Code(row.micro);
}

std::string DeclarationPart(const std::vector<ReadRecord>& records, const MeasuredClaim& claim,
                            const sdpa::Claim& declared) {
  const sdpa::ToggleRow& row = *claim.row;
  const auto level = [&](int value) { return Cat(Code(row.levels.NameOf(value))); };
  Table table("part | of the claim");
  table.AddRow({"baseline → candidate",
                Cat(level(claim.from), " → ", level(claim.to), " of ", Code(row.id), ", ",
                    FamilyTitle(claim.family), "; in records ", InRecords(claim))});
  table.AddRow({"regime", Cat(RegimeOf(declared), ": problems like ", Code(declared.problem))});
  table.AddRow({"prediction", PredictionOf(claim, declared)});
  table.AddRow({"gate", Cat("adopt from ", FormatLimit(row.gate), " on")});
  table.AddRow({"family of tests", FamilyOfTests(claim, declared)});
  table.AddRow({"evidence", EvidenceOf(row)});
  table.AddRow({"results", BitsOf(claim)});
  const Counter* counter =
      row.counter_claim.counter.empty() ? nullptr : FindCounter(row.counter_claim.counter);
  table.AddRow({"counter", counter == nullptr
                               ? std::string("none is expected to change")
                               : Cat(counter->claimed, ": ",
                                     row.counter_claim.rises ? "more" : "fewer", " with it")});
  table.AddRow({"microbenchmark", MicroOf(records, row)});
  table.AddRow({"prior", Cat(row.prior.text, ".")});
  return table.ToMarkdown();
}

std::string VerdictPart(const MeasuredClaim& claim) {
  Table table(
      "design | shape | on top of | ratio, boards of the kind: | this board: | gate: | verdict | "
      "remark | in the record");
  for (const Judgement& judgement : claim.judged) {
    const ReadRecord* record = judgement.record;
    const Verdict* verdict = judgement.verdict;
    std::string remark = Remark(*verdict);
    if (verdict->verdict == "BROKEN") {
      for (const std::string& arm : {verdict->base, verdict->candidate}) {
        const Cell* cell = record->summary.FindCell(arm, verdict->shape);
        if (cell == nullptr || cell->correct != false) continue;
        Append(&remark, remark.empty() ? "" : "; ", Code(arm), " correct: ", CorrectCell(*cell));
      }
    }
    table.AddRow({DesignLink(record->summary, "../"), Code(verdict->shape),
                  Code(ArmName(record->summary, verdict->base)),
                  HasMeaning(*verdict) ? RatioWithInterval(verdict->ratio) : std::string(kNone),
                  HasMeaning(*verdict)
                      ? FormatRatioInterval(verdict->this_board_low, verdict->this_board_high)
                      : std::string(kNone),
                  FormatLimit(verdict->gate), Cat("**", verdict->verdict, "**"),
                  remark.empty() ? std::string(kNone) : remark,
                  Cat(Code(verdict->base), " → ", Code(verdict->candidate))});
  }
  return table.ToMarkdown();
}

// What a factorial says of it beyond single steps.
std::string SharePart(const std::vector<ReadRecord>& records, std::string_view toggle) {
  Table table(
      "design | shape | with only what it needs: | on average: | with all else on: | share of the "
      "whole gain:");
  for (const ReadRecord& record : records) {
    for (const Attribution& row : record.summary.attribution) {
      if (row.toggle != toggle) continue;
      table.AddRow({DesignLink(record.summary, "../"), Code(row.shape),
                    RatioWithInterval(row.first), RatioWithInterval(row.main_effect),
                    RatioWithInterval(row.last),
                    row.shapley_share ? absl::StrFormat("%.1f%%", 100 * *row.shapley_share)
                                      : std::string(kNone)});
    }
  }
  if (table.empty()) return "";
  return Cat(
      "Over all combinations of a factorial (intervals are not adjusted for each other):\n\n",
      table.ToMarkdown());
}

// "96 → 88", or one figure where nothing changed.
std::string Change(const std::string& before, const std::string& after) {
  return before == after ? before : Cat(before, " → ", after);
}
std::string Counts(const CodeChange::Counts& count) {
  return Change(FormatInteger(count.before), FormatInteger(count.after));
}

std::string ResourcePart(const MeasuredClaim& claim) {
  const sdpa::ToggleRow& row = *claim.row;
  constexpr size_t kMostOpcodes = 5;
  const std::string evidence =
      row.evidence.sass.empty() ? "" : Cat("SASS with ", Code(row.evidence.sass));
  Table table(
      "design | without | with | registers / thread: | shared, KiB / CTA: | spills, B: | CTAs / "
      "SM: | instructions:");
  if (!evidence.empty()) table.AddColumn(Cat(evidence, ":"));
  table.AddColumn("opcodes that changed most");
  std::set<std::pair<std::string, std::string>> seen;
  bool factorial = false;
  for (const Judgement& judgement : claim.judged) {
    const ReadRecord* record = judgement.record;
    const Verdict* verdict = judgement.verdict;
    const Summary& summary = record->summary;
    if (!summary.attribution.empty()) {
      factorial = true;
      continue;
    }
    const Cell* before = summary.FindCell(verdict->base, verdict->shape);
    const Cell* after = summary.FindCell(verdict->candidate, verdict->shape);
    if (before == nullptr || after == nullptr) continue;
    if (!before->registers && !after->registers) continue;  // no instance for the shape
    if (!seen.emplace(Cat(before->config, " ", before->code_sha256.value_or("")),
                      Cat(after->config, " ", after->code_sha256.value_or("")))
             .second) {
      continue;
    }
    std::vector<std::string> cells = {
        DesignLink(summary, "../"),
        Code(ArmName(summary, verdict->base)),
        Code(ArmName(summary, verdict->candidate)),
        Change(FormatInteger(before->registers), FormatInteger(after->registers)),
        Change(FormatKib(before->smem_bytes), FormatKib(after->smem_bytes)),
        Change(FormatInteger(before->spill_bytes), FormatInteger(after->spill_bytes)),
        Change(FormatInteger(before->ctas_per_sm), FormatInteger(after->ctas_per_sm))};
    if (const auto& change = verdict->change; change && change->instructions) {
      cells.push_back(Counts(*change->instructions));
      if (!evidence.empty()) {
        cells.push_back(Counts(change->evidence.value_or(CodeChange::Counts{})));
      }
      std::vector<std::string> opcodes;
      const Opcodes changed = change->opcodes.value_or(Opcodes());
      for (const Opcodes::Opcode& opcode : changed.list) {
        if (opcodes.size() == kMostOpcodes) break;
        opcodes.push_back(Cat(Code(opcode.name), " ", Counts(opcode.count)));
      }
      cells.push_back(opcodes.empty() ? "none" : absl::StrJoin(opcodes, ", "));
    }
    table.AddRow(cells);
  }
  if (table.empty()) return "";
  return Cat(
      "One row per pair of kernels, compiled for the GPU of the record. Instructions are counted "
      "in the machine code, not as executed.",
      factorial ? " Pairs of factorial designs are left out." : "", "\n\n", table.ToMarkdown());
}

std::string StaleWarning(const std::vector<ReadRecord>& records, const MeasuredClaim& claim) {
  std::vector<std::string> stale;
  for (const ReadRecord& record : records) {
    std::vector<std::string> arms;
    for (const Judgement& j : claim.judged) {
      if (j.record == &record) arms.insert(arms.end(), {j.verdict->base, j.verdict->candidate});
    }
    if (!arms.empty() && record.staleness.IsStaleFor(arms)) {
      stale.push_back(Code(record.summary.run_id));
    }
  }
  if (stale.empty()) return "";
  return Cat("> **Warning: older machine code.** The kernels changed since ", JoinWords(stale),
             stale.size() == 1 ? "; figures of that record" : "; figures of those records",
             " are of the earlier code. [The index](../", kTechniqueIndexFile,
             "#records) lists the changes.\n\n");
}

}  // namespace

std::string ClaimPage(const std::vector<ReadRecord>& records, const MeasuredClaim& claim,
                      bool has_picture) {
  const sdpa::ToggleRow& row = *claim.row;
  const sdpa::Claim declared = DeclaredOf(claim);
  const Tally tally = TallyOf(claim);
  const std::string& gpu = records[0].summary.provenance.gpu.name;
  std::vector<const Verdict*> verdicts;
  std::set<std::string> designs;
  for (const Judgement& judgement : claim.judged) {
    verdicts.push_back(judgement.verdict);
    designs.insert(judgement.record->summary.design);
  }
  const std::string range = RatioRange(verdicts);
  const bool of_row = claim.from == row.levels.values[0] && claim.to == row.levels.values[1];
  return Cat(
      "# ", ClaimTitle(claim), " (", FamilyTitle(claim.family), ", ", gpu, ")\n\n**",
      AnswerOf(tally), range.empty() ? "" : Cat(": ", range), ".** Technique: [",
      TechniqueName(row), "](../", TechniquePath(row), ").\n\n", StaleWarning(records, claim),
      RegimePart(claim, RegimeOf(declared)), "\n",
      has_picture ? Cat("![Ratios by problem](", ClaimName(claim), ".svg)\n\n") : "",
      "**Mechanism.** ",
      // The row states it for its first on-level.
      claim.to == row.levels.values[1]
          ? ""
          : Cat("(Written for ", Code(row.levels.NameOf(row.levels.values[1])), ".) "),
      row.claim, "\n\n**Lesson.** ",
      row.lesson.empty() ? std::string("None is written down yet.") : Cat(row.lesson, "."), "\n",
      Fold("The claim: baseline, regime, prediction, gate, evidence, prior",
           DeclarationPart(records, claim, declared)),
      Fold(
          Cat("Every verdict: ", Count(static_cast<int64_t>(verdicts.size()), "verdict"), " in ",
              Count(static_cast<int64_t>(designs.size()), "design"), ", ", CountVerdicts(verdicts)),
          VerdictPart(claim)),
      Fold("Resources and instructions", ResourcePart(claim)),
      Fold("Shares of a factorial", of_row ? SharePart(records, row.id) : ""),
      "\nA ratio is time(baseline) / time(candidate): above 1 the candidate is faster. "
      "`warpledger techniques` writes this page from the registry and the newest record of each "
      "design.\n");
}

}  // namespace warpledger::report
