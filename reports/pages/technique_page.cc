// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/technique_page.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/sdpa/registry/claims.h"
#include "kernels/sdpa/rules/rules.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/isolated.h"

namespace warpledger::report {
namespace {

using sdpa::Family;

std::string Ids(const std::array<sdpa::ToggleField, sdpa::kMaxNeeds>& fields) {
  std::vector<std::string> ids;
  for (const sdpa::ToggleField field : fields) {
    if (field != nullptr) ids.push_back(Code(sdpa::ToggleId(field)));
  }
  return JoinWords(ids);
}

std::string_view EvidenceWords(sdpa::EvidenceChange change) {
  switch (change) {
    case sdpa::EvidenceChange::kNone:
      return "stay as they are";
    case sdpa::EvidenceChange::kAppears:
      return "appear";
    case sdpa::EvidenceChange::kGrows:
      return "become more";
    case sdpa::EvidenceChange::kShrinks:
      return "become fewer";
    case sdpa::EvidenceChange::kVanishes:
      return "vanish";
    case sdpa::EvidenceChange::kDiffers:
      return "change in number";
    case sdpa::EvidenceChange::kShrinksInLoops:
      return "become fewer inside loops";
  }
  return "";
}

std::string RegistryPart(const sdpa::ToggleRow& row, const std::vector<Judgement>& judged) {
  std::vector<std::string> levels;
  for (std::size_t i = 0; i < row.levels.count; ++i) {
    levels.push_back(Cat(Code(row.levels.names[i]), " (", row.levels.values[i], ")"));
  }
  std::string out = Cat("**Claim.** ", row.claim, "\n\n**Levels.** ", JoinWords(levels),
                        ", of which the first is off.");
  if (const std::string needs = Ids(row.needs); !needs.empty()) Append(&out, " Needs ", needs, ".");
  if (row.may_break) {
    Append(&out, " Known to miss the accuracy rule on some inputs",
           row.exact_with == nullptr ? "" : Cat(" without ", Code(sdpa::ToggleId(row.exact_with))),
           ".");
  }

  const bool blind = !row.predicted.why.starts_with("Not blind");
  const Verdict* predicted = nullptr;
  for (const Judgement& j : judged) {
    // Other verdicts have no range: they are of another place than the prediction speaks of.
    if (j.verdict->shape == row.predicted.shape && j.verdict->predicted_low) predicted = j.verdict;
  }
  const ablations::ClaimPrediction prediction = {row.predicted.shape, row.predicted.low,
                                                 row.predicted.high, row.predicted.why};
  const Range range = PredictedRange(prediction, predicted);
  const std::string of_level =
      row.levels.count == 2 ? "" : Cat(" of ", Code(row.levels.NameOf(row.levels.values[1])));
  Append(&out, "\n\n**Prediction**", of_level, ", ",
         blind ? "written before anything of it had run" : "written after prototypes had run", ". ",
         FormatLimit(range.low), " to ", FormatLimit(range.high), " at ", Code(row.predicted.shape),
         ", to be adopted from ", FormatLimit(row.gate), " on. ", row.predicted.why, " ");
  if (predicted != nullptr) {
    out += PredictionOutcome(prediction, predicted);
  } else {
    Append(&out, "No record judges it where the prediction speaks of it.");
  }
  Append(&out, "\n\n**Prior.** ", row.prior.text, ".\n");
  if (!row.evidence.ptx.empty() || !row.evidence.sass.empty()) {
    std::vector<std::string> where;
    if (!row.evidence.ptx.empty()) where.push_back(Cat("PTX lines with ", Code(row.evidence.ptx)));
    if (!row.evidence.sass.empty()) {
      where.push_back(Cat("SASS opcodes with ", Code(row.evidence.sass)));
    }
    Append(&out, "\n**Evidence** that the codegen tests ask for. ", JoinWords(where), " ",
           EvidenceWords(row.evidence.change), ".\n");
  }
  return out;
}

// The range that was foreseen of a claim.
std::string Foreseen(const sdpa::ToggleRow& row, const sdpa::LevelClaim* declared,
                     const MeasuredClaim& claim) {
  double low = declared == nullptr ? 0 : declared->low;
  double high = declared == nullptr ? 0 : declared->high;
  if (claim.from == row.levels.values[0] && claim.to == row.levels.values[1]) {
    low = row.predicted.low;
    high = row.predicted.high;
  }
  return low == 0 ? std::string(kNone) : Cat(FormatLimit(low), " to ", FormatLimit(high));
}

// The page's answer: a row per claim, level against level, inside of its regime and outside.
// Declared comparisons come first.
std::string ClaimsPart(const std::vector<MeasuredClaim>& claims, const sdpa::ToggleRow& row) {
  const std::string regime = RegimeOf(row);
  Table table(Cat("claim | kernel | in its regime (", regime, ") | elsewhere | foreseen at ",
                  row.predicted.shape, ": | compared"));
  for (const bool by_plan : {true, false}) {
    for (const MeasuredClaim& claim : claims) {
      if (claim.row != &row || claim.from == claim.to) continue;
      const sdpa::LevelClaim* declared = sdpa::FindLevelClaim(row, claim.from, claim.to);
      if ((declared != nullptr || row.levels.count == 2) != by_plan) continue;
      const auto part = [&](bool inside) {
        const auto of_it = Restricted({claim}, [&](const Judgement& judgement) {
          const Attention* problem = ProblemOf(judgement);
          return (problem != nullptr && RegimeOf(*problem) == regime) == inside;
        });
        return of_it.empty() ? std::string("not measured") : Outcome(of_it[0]);
      };
      table.AddRow({LevelWords(claim), std::string(FamilyTitle(claim.family)), part(true),
                    part(false), Foreseen(row, declared, claim),
                    by_plan ? "as declared" : "by a design alone"});
    }
  }
  return table.empty() ? "" : table.ToMarkdown();
}

std::string VerdictPart(const sdpa::ToggleRow& row, const std::vector<Judgement>& judged) {
  if (judged.empty()) {
    return "No record yet: no design that holds this technique has been measured on this GPU.\n";
  }
  std::vector<const Verdict*> verdicts;
  std::set<std::string> designs;
  for (const Judgement& j : judged) {
    verdicts.push_back(j.verdict);
    designs.insert(j.record->summary.design);
  }
  // Of several levels it would say nothing of any one.
  const std::string range = row.levels.count == 2 ? RatioRange(verdicts) : "";
  std::string out = Cat(Count(static_cast<int64_t>(verdicts.size()), "verdict"), " in ",
                        Count(static_cast<int64_t>(designs.size()), "design"), ": ",
                        CountVerdicts(verdicts), range.empty() ? "" : Cat("; ", range), ".\n\n");
  Table table(
      "design | shape | without | with | ratio, boards of the kind: | this board: | gate: | "
      "verdict | "
      "remark");
  for (const auto& [record, verdict] : judged) {
    std::string remark = Remark(*verdict);
    if (verdict->verdict == "BROKEN") {
      for (const std::string& arm : {verdict->base, verdict->candidate}) {
        const Cell* cell = record->summary.FindCell(arm, verdict->shape);
        if (cell == nullptr || cell->correct != false) continue;
        Append(&remark, remark.empty() ? "" : "; ", Code(arm), " correct: ", CorrectCell(*cell));
      }
    }
    table.AddRow({DesignLink(record->summary, "../"), Code(verdict->shape), Code(verdict->base),
                  Code(verdict->candidate),
                  HasMeaning(*verdict) ? RatioWithInterval(verdict->ratio) : std::string(kNone),
                  HasMeaning(*verdict)
                      ? FormatRatioInterval(verdict->this_board_low, verdict->this_board_high)
                      : std::string(kNone),
                  FormatLimit(verdict->gate), Cat("**", verdict->verdict, "**"),
                  remark.empty() ? std::string(kNone) : remark});
  }
  return out + table.ToMarkdown();
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
  return Cat("\nOver all combinations of a factorial (intervals each by itself):\n\n",
             table.ToMarkdown());
}

// "96 → 88", or one figure where nothing changed.
std::string Change(const std::string& before, const std::string& after) {
  return before == after ? before : Cat(before, " → ", after);
}
std::string Counts(const CodeChange::Counts& count) {
  return Change(FormatInteger(count.before), FormatInteger(count.after));
}

std::string ResourcePart(const sdpa::ToggleRow& row, const std::vector<Judgement>& judged) {
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
  for (const auto& [record, verdict] : judged) {
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
        Code(verdict->base),
        Code(verdict->candidate),
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
      "\n## Resources and instructions\n\nPer pair of kernels, for the GPU of the record; "
      "instructions are counted in the machine code, not as executed.",
      factorial ? " The pairs of factorials are left out." : "", "\n\n", table.ToMarkdown());
}

std::string IsolatedPart(const std::vector<ReadRecord>& records, const sdpa::ToggleRow& row,
                         const std::vector<Judgement>& judged) {
  std::string out = "\n## Alone\n\n";
  if (row.micro.empty()) return out + "No microbenchmark isolates it.\n";
  const auto quoting = std::find_if(records.begin(), records.end(), [&](const ReadRecord& r) {
    return r.summary.FindMicro(row.micro) != nullptr;
  });
  const std::string benchmark(row.micro.substr(0, row.micro.find('/')));
  if (quoting == records.end()) {
    return Cat(out, "No record yet of its microbenchmark ", Code(row.micro), ".\n");
  }
  const ablations::ClaimMicro micro = {row.micro, row.micro_off, row.micro_off_factor};
  const Isolated isolated = IsolatedOf(quoting->summary, micro);
  Append(&out, DescribeCases(isolated, micro));
  if (isolated.effect) {
    Append(&out, ": alone it is worth **", FormatRatio(isolated.effect), "**");
  } else if (row.micro_off.empty()) {
    out += ". The case shows what the mechanism costs; nothing stands against it";
  }
  std::vector<const Verdict*> verdicts;
  for (const Judgement& j : judged) verdicts.push_back(j.verdict);
  const std::string range = RatioRange(verdicts);
  if (isolated.effect && !range.empty()) Append(&out, ", in the kernel ", range);
  return Cat(out, ". How it is measured: [", benchmark, "](../micro/", benchmark, ".md) (record ",
             Code(quoting->summary.MicroRun()), ").\n");
}

// Where the technique can't be, with reasons.
std::string NotApplicablePart(const std::vector<ReadRecord>& records, const sdpa::ToggleRow& row) {
  std::vector<std::string> families;
  for (const Family family : kFamilies) {
    if (!Includes(row.families, family)) families.push_back(Code(sdpa::FamilyName(family)));
  }
  std::string out;
  if (!families.empty()) {
    Append(&out, "- In the ", families.size() == 1 ? "family " : "families ", JoinWords(families),
           ", whose kernels don't branch on it. ", row.elsewhere, row.elsewhere.empty() ? "" : ".",
           "\n");
  }
  if (const std::string others = Ids(row.excludes); !others.empty()) {
    Append(&out, "- Together with ", others, ".\n");
  }
  std::set<std::string> lines;
  std::vector<std::string> order;
  const auto add = [&](std::string line) {
    if (lines.insert(line).second) order.push_back(std::move(line));
  };
  sdpa::AskEveryFamily([&](auto family) {
    for (const sdpa::Exclusion& rule : family.kExclusions) {
      if (rule.toggle != row.field && rule.other != row.field) continue;
      const std::string_view other =
          sdpa::ToggleId(rule.toggle == row.field ? rule.other : rule.toggle);
      add(Cat("- Together with ", Code(other), ", at least at some levels: ", rule.why, ".\n"));
    }
  });
  for (const ReadRecord& record : records) {
    for (const InfeasibleCell& cell : record.summary.infeasible) {
      if (cell.toggle != row.id || cell.why.empty()) continue;
      add(Cat("- As ", Code(cell.variant), " in ", DesignLink(record.summary, "../"), ": ",
              cell.why, ".\n"));
    }
  }
  for (const std::string& line : order) out += line;
  return out.empty() ? "" : Cat("\n## `NOT_APPLICABLE`\n\n", out);
}

}  // namespace

std::vector<Judgement> JudgementsOn(const std::vector<ReadRecord>& records,
                                    std::string_view toggle) {
  std::vector<Judgement> out;
  for (const ReadRecord& record : records) {
    for (const Verdict& verdict : record.summary.verdicts) {
      if (verdict.toggle == toggle) out.push_back({&record, &verdict});
    }
  }
  return out;
}

Page TechniquePage(const std::vector<ReadRecord>& records, const std::vector<MeasuredClaim>& claims,
                   const sdpa::ToggleRow& row) {
  const std::vector<Judgement> judged = JudgementsOn(records, row.id);
  std::string out =
      Cat("# ", row.label, " (", Code(row.id), ") on ", records[0].summary.provenance.gpu.name,
          "\n\nWritten from the registry and the newest record of each design by `warpledger "
          "techniques`; edit those or the renderer, never this page. [All techniques](../",
          kTechniqueIndexFile, ").\n\n");
  std::vector<std::string> stale;
  for (const ReadRecord& record : records) {
    std::vector<std::string> arms;
    for (const Judgement& j : judged) {
      if (j.record == &record) arms.insert(arms.end(), {j.verdict->base, j.verdict->candidate});
    }
    if (!arms.empty() && record.staleness.IsStaleFor(arms)) {
      stale.push_back(Code(record.summary.run_id));
    }
  }
  if (!stale.empty()) {
    Append(&out, "> **Warning: older than the kernels** ", stale.size() == 1 ? "is " : "are ",
           JoinWords(stale),
           ". Figures from there speak of other code than this tree's; [the index](../",
           kTechniqueIndexFile, "#records) says what changed.\n\n");
  }
  Append(
      &out, ClaimsPart(claims, row), "\n", RegistryPart(row, judged), "\n## What this GPU says\n\n",
      VerdictPart(row, judged), SharePart(records, row.id), ResourcePart(row, judged),
      IsolatedPart(records, row, judged), "\n## Why\n\n",
      row.lesson.empty() ? std::string("No lesson is written down yet.\n") : Cat(row.lesson, ".\n"),
      NotApplicablePart(records, row));
  return {TechniquePath(row), out};
}

}  // namespace warpledger::report
