// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/sdpa/registry/techniques.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

using sdpa::Family;

using Claims = std::vector<MeasuredClaim>;

// Past it a sentence is a list.
constexpr size_t kMostNamed = 4;

bool IsHopper(Family family) { return family == Family::kWgmma || family == Family::kResident; }

std::string LinkedOutcome(const MeasuredClaim& claim, std::string_view prefix = "") {
  return Cat(ClaimLink(claim, prefix), ": ", Outcome(claim));
}

// Those that were faster somewhere and slower nowhere, the largest median first.
Claims ThatPay(const Claims& claims) {
  Claims out;
  for (const MeasuredClaim& claim : claims) {
    const Tally tally = TallyOf(claim);
    if (tally.faster > 0 && tally.slower == 0 && tally.median > 1) out.push_back(claim);
  }
  std::stable_sort(out.begin(), out.end(), [](const MeasuredClaim& a, const MeasuredClaim& b) {
    return TallyOf(a).median > TallyOf(b).median;
  });
  return out;
}

struct Answer {
  std::string question;
  std::string link;  // where it is shown
  std::vector<std::string> lines;
};

// The answer, then a line per family with what pays there, in the problems that `counts` takes.
Answer WhatPays(const Claims& claims, std::string question,
                absl::FunctionRef<bool(const Attention&)> counts, bool hopper_alone = false) {
  const Claims here = Restricted(claims, [&](const Judgement& judgement) {
    const Attention* problem = ProblemOf(judgement);
    return problem != nullptr && !problem->projected() && counts(*problem);
  });
  Answer answer = {std::move(question), kTechniqueIndexFile, {}};
  std::vector<std::string> best;
  for (const Family family : kFamilies) {
    Claims of_family;
    std::copy_if(here.begin(), here.end(), std::back_inserter(of_family),
                 [&](const MeasuredClaim& claim) { return claim.family == family; });
    if (of_family.empty() || (hopper_alone && !IsHopper(family))) continue;
    std::vector<std::string> named;
    for (const MeasuredClaim& claim : ThatPay(of_family)) {
      if (named.empty()) best.push_back(Cat(claim.row->label, " in the ", FamilyTitle(family)));
      if (named.size() == kMostNamed) break;
      named.push_back(LinkedOutcome(claim));
    }
    answer.lines.push_back(Cat("In the ", FamilyTitle(family), ": ",
                               named.empty()
                                   ? std::string("no technique was faster and nowhere slower")
                                   : absl::StrJoin(named, "; "),
                               "."));
  }
  if (!answer.lines.empty()) {
    answer.lines.insert(answer.lines.begin(),
                        best.empty() ? std::string("**None** that was faster and nowhere slower.")
                                     : Cat("**", absl::StrJoin(best, "; "),
                                           best.size() == 1 ? "** gives" : "** give", " most."));
  }
  return answer;
}

Claims OfTechnique(const Claims& claims, sdpa::Technique technique) {
  Claims out;
  std::copy_if(claims.begin(), claims.end(), std::back_inserter(out),
               [&](const MeasuredClaim& claim) { return claim.row->technique == technique; });
  return out;
}

// What claims say together.
Tally Sum(const Claims& claims) {
  Tally sum;
  for (const MeasuredClaim& claim : claims) {
    const Tally tally = TallyOf(claim);
    sum.n += tally.n;
    sum.faster += tally.faster;
    sum.slower += tally.slower;
  }
  return sum;
}

Answer ThreeStagesOrTwo(const Claims& claims) {
  Answer answer = {"Three stages of K/V or two?", "", {}};
  Claims third;
  Claims second;
  for (const MeasuredClaim& claim : OfTechnique(claims, sdpa::Technique::kCopiesAhead)) {
    const std::string_view to = claim.row->levels.NameOf(claim.to);
    const std::string_view from = claim.row->levels.NameOf(claim.from);
    if (to == "three_stages" && from == "two_stages") third.push_back(claim);
    if (to == "two_stages") second.push_back(claim);
  }
  if (third.empty()) return answer;
  answer.link = ClaimPath(third[0]);
  const Tally sum = Sum(third);
  answer.lines.push_back(Cat(2 * sum.faster > sum.n ? "**Three.**" : "**Two.**",
                             " The third stage was faster in ", sum.faster, " of ",
                             Count(sum.n, "verdict"), " over two stages, and slower in ",
                             sum.slower, "."));
  for (const Claims& part : {third, second}) {
    for (const MeasuredClaim& claim : part) {
      answer.lines.push_back(
          Cat("In the ", FamilyTitle(claim.family), ", ", LinkedOutcome(claim), "."));
    }
  }
  return answer;
}

Answer WarpSpecialisation(const Claims& claims) {
  Answer answer = {"Did warp specialisation help, and why?", "", {}};
  const Claims of_it = OfTechnique(claims, sdpa::Technique::kWarpSpecialisation);
  if (of_it.empty()) return answer;
  answer.link = TechniquePath(*of_it[0].row);
  std::vector<std::string> helps;
  std::vector<std::string> costs;
  for (const Family family : kFamilies) {
    int64_t balance = 0;
    for (const MeasuredClaim& claim : of_it) {
      if (claim.family != family) continue;
      const Tally tally = TallyOf(claim);
      balance += (tally.faster - tally.slower) * (claim.row->removes_technique ? -1 : 1);
    }
    if (balance > 0) helps.push_back(Cat("the ", FamilyTitle(family)));
    if (balance < 0) costs.push_back(Cat("the ", FamilyTitle(family)));
  }
  answer.lines.push_back(
      Cat(helps.empty() ? "**No.**" : Cat("**Yes**, in ", JoinWords(helps), "."),
          costs.empty() ? "" : Cat(" It costs time in ", JoinWords(costs), ".")));
  const sdpa::ToggleRow* last = nullptr;
  for (const MeasuredClaim& claim : of_it) {
    std::string line = Cat("In the ", FamilyTitle(claim.family), ", ", LinkedOutcome(claim), ".");
    if (claim.row != last && !claim.row->lesson.empty()) {
      Append(&line, " Why: ", claim.row->lesson, ".");
    }
    last = claim.row;
    answer.lines.push_back(std::move(line));
  }
  return answer;
}

// --- Predictions ------------------------------------------------------------------

struct Missed {
  const MeasuredClaim* claim;
  const Judgement* judgement;
  double factor;  // by how much the ratio lies outside of the range
};

std::vector<Missed> MissedPredictions(const Claims& claims, int64_t* judged) {
  std::vector<Missed> missed;
  *judged = 0;
  for (const MeasuredClaim& claim : claims) {
    for (const Judgement& judgement : claim.judged) {
      const Verdict& v = *judgement.verdict;
      if (!v.prediction_held || !v.predicted_low || !v.ratio.value || !HasMeaning(v)) continue;
      ++*judged;
      if (*v.prediction_held) continue;
      const double ratio = *v.ratio.value;
      missed.push_back(
          {&claim, &judgement,
           ratio < *v.predicted_low ? *v.predicted_low / ratio : ratio / *v.predicted_high});
    }
  }
  std::stable_sort(missed.begin(), missed.end(),
                   [](const Missed& a, const Missed& b) { return a.factor > b.factor; });
  return missed;
}

std::string MissedTable(const std::vector<Missed>& missed) {
  Table table("claim | problem | predicted: | measured, boards of the kind: | missed by: | record");
  for (const Missed& miss : missed) {
    const Verdict& v = *miss.judgement->verdict;
    table.AddRow({ClaimLink(*miss.claim, ""), Code(v.shape),
                  Cat(FormatLimit(*v.predicted_low), " to ", FormatLimit(*v.predicted_high)),
                  RatioWithInterval(v.ratio), FormatRatio(miss.factor),
                  DesignLink(miss.judgement->record->summary, "")});
  }
  return table.ToMarkdown();
}

constexpr char kMissedAnchor[] = "#predictions-that-missed";

Answer Surprises(const std::vector<Missed>& missed, int64_t judged) {
  Answer answer = {"What surprised, and which predictions missed?", kMissedAnchor, {}};
  const auto n = static_cast<int64_t>(missed.size());
  answer.lines.push_back(
      Cat(n, " of ", Count(judged, "prediction"), " that could be judged missed."));
  std::vector<std::string> named;
  for (const Missed& miss : missed) {
    if (named.size() == kMostNamed) break;
    const Verdict& v = *miss.judgement->verdict;
    named.push_back(Cat(ClaimLink(*miss.claim, ""), ": ", FormatRatio(v.ratio.value), " at ",
                        Code(v.shape), " where ", FormatLimit(*v.predicted_low), " to ",
                        FormatLimit(*v.predicted_high), " was expected"));
  }
  if (!named.empty()) answer.lines.push_back(Cat("The widest: ", absl::StrJoin(named, "; "), "."));
  return answer;
}

// What a design compares, in a sentence; empty where today's subject has no such design.
std::string LabelOf(const Summary& summary) {
  const auto design = summary.subject->FindDesign(summary.design);
  return design.ok() ? design->label : "";
}

std::string Text(const Answer& answer) {
  std::string out = Cat("- **[", answer.question, "](", answer.link, ")**\n");
  for (const std::string& line : answer.lines) Append(&out, "  - ", line, "\n");
  return out;
}

}  // namespace

std::string QuestionsText(const std::vector<ReadRecord>& records) {
  const Claims claims = MeasuredClaims(records);
  int64_t judged = 0;
  const std::vector<Missed> missed = MissedPredictions(claims, &judged);
  const std::vector<Answer> answers = {
      WhatPays(claims, "What pays at short lengths, full mask (at most 1024 keys)?",
               [](const Attention& p) { return p.seq_q > 1 && p.seq_kv <= 1024 && !p.causal; }),
      WhatPays(claims, "What pays at long lengths, full mask (2048 keys and more)?",
               [](const Attention& p) { return p.seq_q > 1 && p.seq_kv >= 2048 && !p.causal; }),
      WhatPays(claims, "What pays under a causal mask?",
               [](const Attention& p) { return p.seq_q > 1 && p.causal; }),
      WhatPays(claims, "What pays in decoding (one query row)?",
               [](const Attention& p) { return p.seq_q == 1; }),
      WhatPays(
          claims, "What pays on Hopper at S = 512, causal?",
          [](const Attention& p) { return p.seq_q == 512 && p.seq_kv == 512 && p.causal; },
          /*hopper_alone=*/true),
      ThreeStagesOrTwo(claims),
      WarpSpecialisation(claims),
      Surprises(missed, judged),
      {"What did the L4 notes say, and what holds here?", kL4NotesFile, L4NotesAnswer(records)}};
  std::string out = Cat(
      "# What the records say on ", records[0].summary.provenance.gpu.name,
      "\n\nWritten from the registry and the newest record of each design by `warpledger "
      "techniques`; edit those or the renderer, never this page. A ratio is time(without) / "
      "time(with): above 1 is faster. At the power limit it is of SM cycles, that is of times at "
      "equal clocks. A technique is named where it was faster in at least one "
      "cell and slower in none; the largest median comes first. Faster and slower mean that the "
      "whole interval, of boards of the kind, lies on that side of 1.\n\n## Questions and "
      "answers\n\n");
  for (const Answer& answer : answers) {
    if (!answer.lines.empty()) out += Text(answer);
  }
  Append(
      &out,
      "\nMore: [the fastest kernels beside their peers](standings.md), [every technique at every "
      "problem](",
      kTechniqueIndexFile, "), [what records and older pages call a thing](", kNamesFile, ").\n");
  if (!missed.empty()) {
    Append(&out, "\n## Predictions that missed\n\nThe widest miss first.\n\n", MissedTable(missed));
  }
  Table table("design | what it compares | record | state");
  for (const ReadRecord& record : records) {
    table.AddRow({DesignLink(record.summary, ""), LabelOf(record.summary),
                  Code(record.summary.run_id), StateOf(record)});
  }
  Append(&out, "\n## Reports by design\n\n", table.ToMarkdown());
  return out;
}

std::string TechniqueTable(const std::vector<ReadRecord>& records, std::string_view prefix) {
  const Claims claims = MeasuredClaims(records);
  Table table("technique | on Hopper | on the sm_80-class path | use when");
  for (const sdpa::TechniqueRow& technique : sdpa::kTechniques) {
    const Claims of_it = OfTechnique(claims, technique.id);
    const auto worth = [](const MeasuredClaim& claim) {
      const double median = TallyOf(claim).median;
      return claim.row->removes_technique ? 1 / median : median;
    };
    const auto best = [&](bool hopper) {
      const MeasuredClaim* found = nullptr;
      for (const MeasuredClaim& claim : of_it) {
        if (IsHopper(claim.family) != hopper || TallyOf(claim).n == 0) continue;
        if (found == nullptr || worth(claim) > worth(*found)) found = &claim;
      }
      if (found == nullptr) return std::string(kNone);
      return Cat(found->row->removes_technique ? "without it: " : "",
                 LinkedOutcome(*found, prefix));
    };
    const std::string name =
        of_it.empty() ? std::string(technique.name)
                      : Cat("[", technique.name, "](", prefix, TechniquePath(*of_it[0].row), ")");
    table.AddRow({Cat("**", name, "**"), best(true), best(false), std::string(technique.use_when)});
  }
  return Cat(table.ToMarkdown(),
             "\nEach cell is the level of the technique with the best median; a ratio is "
             "time(without) / time(with) over all problems and designs that judged it. [Which "
             "pay where, what surprised, what missed](",
             prefix, kQuestionsFile, ").\n");
}

}  // namespace warpledger::report
