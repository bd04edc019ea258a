// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/techniques.h"
#include "kernels/sdpa/rules/rules.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"
#include "reports/sections/sections.h"

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

// A row per claim, a column per kind of problem that any of them was judged at.
std::string FamilyTable(const std::vector<MeasuredClaim>& claims) {
  const auto at = [&](const MeasuredClaim& claim, std::string_view regime) {
    return Restricted({claim}, [&](const Judgement& judgement) {
      const Attention* problem = ProblemOf(judgement);
      return problem != nullptr && RegimeOf(*problem) == regime;
    });
  };
  std::vector<std::string_view> regimes;
  for (const std::string_view regime : kRegimeNames) {
    if (std::any_of(claims.begin(), claims.end(),
                    [&](const MeasuredClaim& claim) { return !at(claim, regime).empty(); })) {
      regimes.push_back(regime);
    }
  }
  Table table("kernel | claim");
  for (const std::string_view regime : regimes) table.AddColumn(std::string(regime));
  for (const Family family : kFamilies) {
    for (const MeasuredClaim& claim : claims) {
      if (claim.family != family) continue;
      std::vector<std::string> cells = {std::string(FamilyTitle(family)), ClaimLink(claim, "../")};
      for (const std::string_view regime : regimes) {
        const auto here = at(claim, regime);
        cells.push_back(here.empty() ? std::string(kNone) : Outcome(here[0]));
      }
      table.AddRow(cells);
    }
  }
  return table.empty() ? "No record yet: no design that has this technique was measured on this "
                         "GPU.\n"
                       : table.ToMarkdown();
}

// The microbenchmark is of the first on-level; the kernel's ratios beside it are of that level too.
std::string IsolatedPart(const std::vector<ReadRecord>& records, const sdpa::ToggleRow& row,
                         const std::vector<MeasuredClaim>& claims) {
  std::string out = "**Microbenchmark.** ";
  if (row.micro.empty()) return out + "No microbenchmark isolates it.\n";
  const ReadRecord* quoting = FindIn(
      records, [&](const ReadRecord& r) { return r.summary.FindMicro(row.micro) != nullptr; });
  const std::string benchmark(row.micro.substr(0, row.micro.find('/')));
  if (quoting == nullptr) {
    return Cat(out, "No record yet of its microbenchmark ", Code(row.micro), ".\n");
  }
  const ablations::ClaimMicro micro = {row.micro, row.micro_off, row.micro_off_factor};
  const Isolated isolated = IsolatedOf(quoting->summary, micro);
  Append(&out, DescribeCases(isolated, micro));
  if (isolated.effect) {
    Append(&out, ": alone it is worth **", FormatRatio(isolated.effect), "**");
  } else if (row.micro_off.empty()) {
    out += ". There is no case without the mechanism to compare with";
  }
  std::vector<const Verdict*> verdicts;
  for (const MeasuredClaim& claim : claims) {
    if (claim.row != &row || claim.from != row.levels.values[0] ||
        claim.to != row.levels.values[1]) {
      continue;
    }
    for (const Judgement& judgement : claim.judged) verdicts.push_back(judgement.verdict);
  }
  const std::string range = RatioRange(verdicts);
  if (isolated.effect && !range.empty()) {
    const std::string level(row.levels.NameOf(row.levels.values[1]));
    Append(&out, ", in the kernel ", row.levels.count > 2 ? Cat("as ", Code(level), " ") : "",
           range);
  }
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
  return out.empty() ? "" : Cat("\n**Not applicable**:\n\n", out);
}

std::string TogglePart(const std::vector<ReadRecord>& records,
                       const std::vector<MeasuredClaim>& claims, const sdpa::ToggleRow& row) {
  std::vector<std::string> levels;
  for (std::size_t i = 0; i < row.levels.count; ++i) {
    levels.push_back(Cat(Code(row.levels.names[i]), " (", row.levels.values[i], ")"));
  }
  std::string out =
      Cat("\n## ", row.label, " (", Code(row.id), ")\n\n", row.claim, "\n\n**Lesson.** ",
          row.lesson.empty() ? std::string("None is written down yet.") : Cat(row.lesson, "."),
          "\n\n**Levels** (the first is off): ", JoinWords(levels), ".");
  if (const std::string needs = Ids(row.needs); !needs.empty()) Append(&out, " Needs ", needs, ".");
  if (row.may_break) {
    Append(&out, " It breaks the accuracy rule on some inputs",
           row.exact_with == nullptr ? "" : Cat(" without ", Code(sdpa::ToggleId(row.exact_with))),
           ".");
  }
  Append(&out, "\n\n**Prediction** for ", Code(row.levels.names[1]), ": ",
         FormatLimit(row.predicted.low), " to ", FormatLimit(row.predicted.high), " at ",
         Code(sdpa::ShownName(row.predicted.shape)), ", written ",
         row.predicted.blind ? "before anything of it" : "after prototypes", " had run; gate ",
         FormatLimit(row.gate), ". ", row.predicted.why);
  if (std::none_of(claims.begin(), claims.end(),
                   [&](const MeasuredClaim& claim) { return claim.row == &row; })) {
    out += " No record judges it on this GPU.";
  }
  return Cat(out, "\n\n**Prior.** ", row.prior.text, ".\n\n", IsolatedPart(records, row, claims),
             NotApplicablePart(records, row));
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

std::string TechniquePage(const std::vector<ReadRecord>& records,
                          const std::vector<MeasuredClaim>& claims,
                          const std::vector<const sdpa::ToggleRow*>& rows) {
  std::vector<MeasuredClaim> of_it;
  std::copy_if(claims.begin(), claims.end(), std::back_inserter(of_it),
               [&](const MeasuredClaim& claim) {
                 return std::find(rows.begin(), rows.end(), claim.row) != rows.end();
               });
  const sdpa::TechniqueRow* shared = sdpa::FindTechnique(rows[0]->technique);
  std::string out =
      Cat("# ", TechniqueName(*rows[0]), " on ", records[0].summary.provenance.gpu.name, "\n\n");
  if (shared != nullptr) {
    Append(&out, shared->mechanism, " **Does it pay?** It ", UseWhen(claims, *shared), ".\n\n");
  }
  Append(&out, FamilyTable(of_it),
         "\nA ratio is time(baseline) / time(candidate): above 1 the candidate is faster. Each "
         "claim links to its page. [All techniques](../",
         kTechniqueIndexFile, ").\n");
  for (const sdpa::ToggleRow* row : rows) out += TogglePart(records, claims, *row);
  return Cat(out,
             "\n`warpledger techniques` writes this page from the registry and the newest record "
             "of each design.\n");
}

}  // namespace warpledger::report
