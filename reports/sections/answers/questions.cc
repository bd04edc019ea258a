// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
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

bool PaysInMost(const Tally& tally) { return 2 * tally.faster > tally.n; }

// Those that were faster in most verdicts, the largest median first.
Claims ThatPay(const Claims& claims) {
  Claims out;
  for (const MeasuredClaim& claim : claims) {
    if (PaysInMost(TallyOf(claim))) out.push_back(claim);
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
      if (named.empty()) best.push_back(Cat(LabelOf(claim), " in the ", FamilyTitle(family)));
      if (named.size() == kMostNamed) break;
      named.push_back(LinkedOutcome(claim));
    }
    answer.lines.push_back(Cat("In the ", FamilyTitle(family), ": ",
                               named.empty()
                                   ? std::string("no technique was faster in most verdicts")
                                   : absl::StrJoin(named, "; "),
                               "."));
  }
  if (!answer.lines.empty()) {
    answer.lines.insert(answer.lines.begin(),
                        best.empty() ? std::string("**No technique** was faster in most verdicts.")
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
    sum.neutral += tally.neutral;
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
  answer.lines.push_back(
      Cat(2 * sum.faster > sum.n ? "**Three.**" : "**Two.**", " The third stage was faster in ",
          sum.faster, " of ", Count(sum.n, "verdict"), " over two stages, and slower in ",
          sum.slower, sum.undecided() > 0 ? Cat("; not decided in ", sum.undecided()) : "", "."));
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

// Several designs may judge one prediction: that of a claim at a problem.
struct Predictions {
  int64_t verdicts = 0;
  int64_t outside = 0;  // held, but the ratio itself lies outside of the range
  std::set<std::pair<const MeasuredClaim*, std::string>> all;
  std::set<std::pair<const MeasuredClaim*, std::string>> ever_missed;
  std::vector<Missed> missed;
};

Predictions JudgedPredictions(const Claims& claims) {
  Predictions out;
  for (const MeasuredClaim& claim : claims) {
    for (const Judgement& judgement : claim.judged) {
      const Verdict& v = *judgement.verdict;
      if (!v.prediction_held || !v.predicted_low || !v.ratio.value || !HasMeaning(v)) continue;
      const double ratio = *v.ratio.value;
      ++out.verdicts;
      out.all.emplace(&claim, v.shape);
      if (*v.prediction_held) {
        out.outside += ratio < *v.predicted_low || ratio > *v.predicted_high;
        continue;
      }
      out.ever_missed.emplace(&claim, v.shape);
      out.missed.push_back(
          {&claim, &judgement,
           ratio < *v.predicted_low ? *v.predicted_low / ratio : ratio / *v.predicted_high});
    }
  }
  std::stable_sort(out.missed.begin(), out.missed.end(),
                   [](const Missed& a, const Missed& b) { return a.factor > b.factor; });
  return out;
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

Answer Surprises(const Predictions& judged) {
  Answer answer = {"What surprised, and which predictions missed?", kMissedAnchor, {}};
  const auto n = static_cast<int64_t>(judged.missed.size());
  answer.lines.push_back(Cat(
      "**", judged.ever_missed.size(), " of ",
      Count(static_cast<int64_t>(judged.all.size()), "prediction"),
      "** missed in at least one verdict: ", n, " of ", Count(judged.verdicts, "verdict"),
      " on them. A prediction holds in a verdict whose interval reaches the predicted range; in ",
      judged.outside, " of ", Count(judged.verdicts - n, "verdict"),
      " where it held, the ratio itself lies outside of the range."));
  std::vector<std::string> named;
  for (const Missed& miss : judged.missed) {
    if (named.size() == kMostNamed) break;
    const Verdict& v = *miss.judgement->verdict;
    named.push_back(Cat(ClaimLink(*miss.claim, ""), ": ", FormatRatio(v.ratio.value), " at ",
                        Code(v.shape), " where ", FormatLimit(*v.predicted_low), " to ",
                        FormatLimit(*v.predicted_high), " was expected"));
  }
  if (!named.empty()) {
    answer.lines.push_back(Cat("The largest misses: ", absl::StrJoin(named, "; "), "."));
  }
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
  const Predictions predictions = JudgedPredictions(claims);
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
      Surprises(predictions),
      {"What did the L4 notes say, and what holds here?", kL4NotesFile, L4NotesAnswer(records)}};
  std::string out = Cat(
      "# Which techniques pay on ", records[0].summary.provenance.gpu.name,
      "\n\n## Questions and answers\n\nA ratio is time(without) / time(with): above 1 is faster. "
      "At the power limit the ratio compares SM cycles, which are times at equal clocks. "
      "“Faster” and “slower” mean that the whole interval (for boards of this kind) lies on that "
      "side of 1. Each answer lists, for each kernel, up to ",
      kMostNamed,
      " techniques that were faster in more than half of their verdicts, the largest median "
      "first.\n\n");
  for (const Answer& answer : answers) {
    if (!answer.lines.empty()) out += Text(answer);
  }
  Append(
      &out,
      "\nMore: [the fastest kernels beside their peers](standings.md), [every technique at every "
      "problem](",
      kTechniqueIndexFile, "), [names in records and on older pages](", kNamesFile, ").\n");
  if (!predictions.missed.empty()) {
    Append(
        &out,
        "\n## Predictions that missed\n\nOne row per verdict whose whole interval lies outside of "
        "the predicted range. The largest miss is first. A miss is the factor between the measured "
        "ratio and the nearer end of the range.\n\n",
        MissedTable(predictions.missed));
  }
  Table table("design | what it compares | record | state");
  for (const ReadRecord& record : records) {
    const std::string what(LabelOf(record.summary));
    table.AddRow({DesignLink(record.summary, ""), what.empty() ? "an older design" : what,
                  Code(record.summary.run_id), StateOf(record)});
  }
  Append(&out, "\n## Reports by design\n\n", table.ToMarkdown(),
         "\n`warpledger techniques` writes this page from the registry and the newest record of "
         "each design.\n");
  return out;
}

namespace {

// How often it pays; a claim that removes its technique tells by being slower.
Tally OfUse(const MeasuredClaim& claim) {
  Tally tally = TallyOf(claim);
  if (claim.row->removes_technique) {
    std::swap(tally.faster, tally.slower);
    tally.median = 1 / tally.median;
  }
  return tally;
}
// The claim to speak of a technique by, of those that `counts` takes; null where none was judged.
// It is the one with the best median, or of another level of its toggle with the same baseline,
// where verdicts between the two levels tell for that: they decide for the level that they are of
// where it is faster in most, else for the other, which was there first.
const MeasuredClaim* Foremost(const Claims& claims,
                              absl::FunctionRef<bool(const MeasuredClaim&)> counts) {
  const MeasuredClaim* best = nullptr;
  for (const MeasuredClaim& claim : claims) {
    if (claim.from != claim.row->levels.values[0] || !counts(claim)) continue;
    if (TallyOf(claim).n == 0) continue;
    if (best == nullptr || OfUse(claim).median > OfUse(*best).median) best = &claim;
  }
  const auto better = [&]() -> const MeasuredClaim* {
    for (const MeasuredClaim& claim : claims) {
      if (claim.row != best->row || claim.family != best->family || TallyOf(claim).n == 0) continue;
      const bool pays = PaysInMost(OfUse(claim));
      if (pays ? claim.from != best->to : claim.to != best->to) continue;
      const int level = pays ? claim.to : claim.from;
      for (const MeasuredClaim& other : claims) {
        if (other.row == best->row && other.family == best->family && other.from == best->from &&
            other.to == level && TallyOf(other).n > 0) {
          return &other;
        }
      }
    }
    return nullptr;
  };
  // No more moves than levels: verdicts of three levels may go round.
  for (std::size_t moves = best == nullptr ? 0 : best->row->levels.count; moves > 0; --moves) {
    const MeasuredClaim* next = better();
    if (next == nullptr) break;
    best = next;
  }
  return best;
}

constexpr std::string_view kHowOften[] = {"pays without a loss", "mostly pays", "sometimes pays",
                                          "seldom pays", "never pays"};
std::string_view HowOften(const Tally& tally) {
  if (PaysInMost(tally)) return kHowOften[tally.slower == 0 ? 0 : 1];
  if (tally.faster >= tally.slower) return kHowOften[2];
  return kHowOften[tally.faster > 0 ? 3 : 4];
}

}  // namespace

std::string UseWhen(const Claims& claims, const sdpa::TechniqueRow& technique) {
  const Claims of_it = OfTechnique(claims, technique.id);
  std::map<std::string_view, std::vector<std::string>> kernels;
  for (const Family family : kFamilies) {
    // What makes the kernel another one judges kernels.
    const MeasuredClaim* claim = Foremost(of_it, [&](const MeasuredClaim& each) {
      return each.family == family && each.row->id != sdpa::FamilyRoot(family);
    });
    if (claim == nullptr) continue;
    kernels[HowOften(OfUse(*claim))].push_back(Cat("the ", FamilyTitle(family)));
  }
  std::vector<std::string> parts;
  for (const std::string_view often : kHowOften) {
    if (kernels.contains(often)) parts.push_back(Cat(often, " in ", JoinWords(kernels[often])));
  }
  std::string out = absl::StrJoin(parts, ", ");
  if (technique.where.empty()) return out;
  return Cat(out, out.empty() ? "" : "; ", "best where ", technique.where);
}

std::string TechniqueTable(const std::vector<ReadRecord>& records, std::string_view prefix) {
  const Claims claims = MeasuredClaims(records);
  Table table("technique | on Hopper | on the sm_80-class path | does it pay?");
  bool marked = false;
  for (const sdpa::TechniqueRow& technique : sdpa::kTechniques) {
    const Claims of_it = OfTechnique(claims, technique.id);
    const auto best = [&](bool hopper) {
      const MeasuredClaim* found = Foremost(
          of_it, [&](const MeasuredClaim& claim) { return IsHopper(claim.family) == hopper; });
      if (found == nullptr) return std::string(kNone);
      const bool older = RestsOnOlderCode(*found);
      marked |= older;
      return Cat(found->row->removes_technique ? "without it: " : "", LinkedOutcome(*found, prefix),
                 older ? " †" : "");
    };
    const std::string name =
        of_it.empty() ? std::string(technique.name)
                      : Cat("[", technique.name, "](", prefix, TechniquePath(*of_it[0].row), ")");
    table.AddRow({Cat("**", name, "**"), best(true), best(false), UseWhen(claims, technique)});
  }
  return Cat(table.ToMarkdown(),
             "\nEach cell shows one claim: the level of the technique with the best median, or "
             "another level if it won the verdicts between the two. A ratio is time(without) / "
             "time(with); its range covers all problems and designs that judged the claim. "
             "“Mostly pays” means faster in more than half of the verdicts on that kernel, and "
             "“without a loss” also slower in none; “sometimes”: faster at least as often as "
             "slower; “seldom”: slower more often; “never”: faster in none. The last column leaves "
             "out claims that make a kernel another family's, as `wgmma` does. ",
             marked ? "†: some figures are of older machine code. " : "",
             "[Which techniques pay where, and which predictions missed](", prefix, kQuestionsFile,
             ").\n");
}

}  // namespace warpledger::report
