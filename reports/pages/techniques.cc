// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/records.h"
#include "reports/model/summary.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

using sdpa::Family;

// Shapes that one table holds side by side.
struct ShapeGroup {
  int64_t head_dim = 0;
  bool causal = false;
  std::vector<std::string> names;
};

std::vector<ShapeGroup> GroupShapes(const std::vector<ReadRecord>& records) {
  std::vector<ShapeGroup> groups;
  for (const ReadRecord& record : records) {
    for (const Shape& shape : record.summary.shapes) {
      if (!shape.attention) continue;
      const Attention& of = *shape.attention;
      ShapeGroup* group = FindIn(groups, [&](const ShapeGroup& g) {
        return g.head_dim == of.head_dim && g.causal == of.causal;
      });
      if (group == nullptr) group = &*groups.insert(groups.end(), {of.head_dim, of.causal, {}});
      AddOnce(shape.name, &group->names);
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ShapeGroup& a, const ShapeGroup& b) {
    return std::pair(a.head_dim, a.causal) < std::pair(b.head_dim, b.causal);
  });
  return groups;
}

// What each design says of a toggle at a shape, a line per design.
std::string IndexCell(const std::vector<ReadRecord>& records, std::string_view toggle,
                      std::string_view shape) {
  std::vector<std::string> lines;
  for (const ReadRecord& record : records) {
    std::vector<const Verdict*> verdicts;
    for (const Verdict& verdict : record.summary.verdicts) {
      if (verdict.toggle == toggle && verdict.shape == shape) verdicts.push_back(&verdict);
    }
    if (verdicts.empty()) continue;
    std::string line = DesignLink(record.summary, "");
    if (verdicts.size() == 1) {
      Append(&line, " ", verdicts[0]->verdict);
    } else {
      Append(&line, " ", CountVerdicts(verdicts));
    }
    const std::string range = RatioRange(verdicts);
    if (!range.empty()) Append(&line, " ", range);
    lines.push_back(line);
  }
  return lines.empty() ? std::string(kNone) : absl::StrJoin(lines, "<br>");
}

// The toggles whose first family, in the reports' order, it is.
std::vector<const sdpa::ToggleRow*> TogglesOf(Family family) {
  std::vector<const sdpa::ToggleRow*> out;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    const Family* first = FindIn(kFamilies, [&](Family f) { return Includes(row.families, f); });
    if (first != nullptr && *first == family) out.push_back(&row);
  }
  return out;
}

// In the registry's order: the toggles of a technique together, where its first one stands.
std::vector<std::vector<const sdpa::ToggleRow*>> TogglesByTechnique() {
  std::vector<std::vector<const sdpa::ToggleRow*>> out;
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control) continue;
    auto* same = FindIn(
        out, [&](const auto& rows) { return TechniquePath(*rows[0]) == TechniquePath(row); });
    if (same == nullptr) {
      out.push_back({&row});
    } else {
      same->push_back(&row);
    }
  }
  return out;
}

std::string FamilySection(const std::vector<ReadRecord>& records, Family family,
                          const std::vector<ShapeGroup>& groups) {
  std::string out;
  std::vector<std::string> without_record;
  for (const ShapeGroup& group : groups) {
    Table table("technique");
    for (const std::string& name : group.names) table.AddColumn(Code(name));
    for (const sdpa::ToggleRow* row : TogglesOf(family)) {
      std::vector<std::string> cells = {
          Cat("[", row->label, "](", TechniquePath(*row), ") ", Code(row->id))};
      for (const std::string& name : group.names) {
        cells.push_back(IndexCell(records, row->id, name));
      }
      if (std::all_of(cells.begin() + 1, cells.end(),
                      [](const std::string& cell) { return cell == kNone; })) {
        continue;
      }
      table.AddRow(cells);
    }
    if (table.empty()) continue;
    Append(&out, "\nhead_dim ", group.head_dim, group.causal ? ", causal" : "", ":\n\n",
           table.ToMarkdown());
  }
  for (const sdpa::ToggleRow* row : TogglesOf(family)) {
    if (JudgementsOn(records, row->id).empty()) {
      without_record.push_back(Cat("[", row->label, "](", TechniquePath(*row), ")"));
    }
  }
  if (!without_record.empty()) {
    Append(&out, "\nNo record yet: ", JoinWords(without_record), ".\n");
  }
  return out;
}

Page IndexPage(const std::vector<ReadRecord>& records) {
  std::string out = Cat(
      "# Techniques on ", records[0].summary.provenance.gpu.name,
      "\n\nAll verdicts on each toggle of the registry, by design and shape. A technique links to "
      "its page, a design to its report. A ratio is time(without) / time(with): above 1 is faster. "
      "If a design judges a technique several times at a shape, the cell counts the verdicts and "
      "shows the smallest and the largest ratio. [Questions and answers](README.md) sum this up. "
      "`warpledger techniques` writes this page from the newest record of each design.\n");
  const std::vector<ShapeGroup> groups = GroupShapes(records);
  for (const Family family : kFamilies) {
    Append(&out, "\n## The ", FamilyTitle(family), " (family `", sdpa::FamilyName(family), "`)\n",
           FamilySection(records, family, groups));
  }
  Table table("record | design | shapes | state");
  for (const ReadRecord& record : records) {
    std::vector<std::string> shapes;
    for (const Shape& shape : record.summary.shapes) shapes.push_back(Code(shape.name));
    table.AddRow({Code(record.summary.run_id), DesignLink(record.summary, ""), JoinWords(shapes),
                  StateOf(record)});
  }
  Append(&out, "\n## Records\n\n", table.ToMarkdown());
  return {kTechniqueIndexFile, out};
}

}  // namespace

absl::StatusOr<Techniques> RenderTechniques(std::vector<Summary> summaries,
                                            const RenderOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<ReadRecord> records,
                   ReadRecords(std::move(summaries), options));
  const std::vector<MeasuredClaim> claims = MeasuredClaims(records);
  Techniques out = {.pages = {IndexPage(records),
                              {kQuestionsFile, QuestionsText(records)},
                              {kL4NotesFile, L4NotesText(records, claims)},
                              {kNamesFile, NamesText(records, claims)}},
                    .readme = TechniqueTable(records, options.picture_prefix),
                    .claim_table = ClaimTable(claims).dump(1) + "\n"};
  for (const std::vector<const sdpa::ToggleRow*>& rows : TogglesByTechnique()) {
    out.pages.push_back({TechniquePath(*rows[0]), TechniquePage(records, claims, rows)});
  }
  for (const MeasuredClaim& claim : claims) {
    std::string picture = ClaimPicture(claim);
    out.pages.push_back({ClaimPath(claim), ClaimPage(records, claim, !picture.empty())});
    if (picture.empty()) continue;
    out.pages.push_back({Cat("claims/", ClaimName(claim), ".svg"), std::move(picture)});
  }
  return out;
}

}  // namespace warpledger::report
