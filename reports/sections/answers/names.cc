// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_join.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/shapes.h"
#include "reports/model/arm_names.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

// Each toggle had a page of its own once, with all of its levels.
std::string PageTable(const std::vector<MeasuredClaim>& claims) {
  Table table("page of a toggle, once | technique | claims");
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    std::vector<std::string> pages;
    for (const MeasuredClaim& claim : claims) {
      if (claim.row == &row) {
        pages.push_back(Cat("[", ClaimName(claim), "](", ClaimPath(claim), ")"));
      }
    }
    table.AddRow({Code(Cat("techniques/", row.id, ".md")),
                  Cat("[", TechniqueName(row), "](", TechniquePath(row), ")"),
                  pages.empty() ? std::string(kNone) : absl::StrJoin(pages, "<br>")});
  }
  return table.ToMarkdown();
}

std::string LevelTable() {
  Table table("in records | level");
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    for (std::size_t i = 0; row.levels.count > 2 && i < row.levels.count; ++i) {
      table.AddRow({Code(Cat(row.id, "=", row.levels.values[i])),
                    Code(Cat(row.id, "=", row.levels.names[i]))});
    }
  }
  return table.ToMarkdown();
}

std::string ProblemTable() {
  Table table("in records | on pages | by its sizes | why");
  for (const sdpa::NamedShape& shape : sdpa::kShapes) {
    if (shape.problem.embed_dim > 0) continue;  // their names are the only ones
    table.AddRow({Code(shape.name), Code(sdpa::ShownName(shape.name)),
                  Code(sdpa::ProblemName(shape.problem)), std::string(shape.why)});
  }
  return table.ToMarkdown();
}

}  // namespace

std::string NamesText(const std::vector<ReadRecord>& records,
                      const std::vector<MeasuredClaim>& claims) {
  std::string out =
      Cat("# Names on ", records[0].summary.provenance.gpu.name,
          "\n\nOlder names and today's names of pages, levels, problems and variants. Records keep "
          "the names that they were made with. Written by `warpledger techniques`.\n\n## Pages\n\n",
          PageTable(claims),
          "\n## Levels\n\nA toggle alone is its first level: `cp_async_stages` is "
          "`cp_async_stages=2`.\n\n",
          LevelTable(), "\n## Problems\n\n`warpledger` accepts every name of a problem.\n\n",
          ProblemTable(),
          "\n## Variants\n\nA name consists of a base of the design and the changes from there. "
          "`warpledger` accepts the name in the record.\n");
  for (const ReadRecord& record : records) {
    Table table("in the record | on pages");
    for (const ArmAlias& alias : ArmAliases(record.summary)) {
      table.AddRow({Code(alias.record), Code(alias.name)});
    }
    if (table.empty()) continue;
    out += Fold(Cat(record.summary.design, " (", record.summary.run_id, ")"), table.ToMarkdown());
  }
  return out;
}

}  // namespace warpledger::report
