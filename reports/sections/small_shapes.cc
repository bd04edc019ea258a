// SPDX-License-Identifier: Apache-2.0
// Small problems: the steps and the peers by time, and a budget of floors beside what is reached.

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/model/derived/budget.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

// Everything of ours but the controls, in the record's order.
std::vector<const Cell*> Arms(const Summary& summary, const Shape& shape) {
  std::vector<const Cell*> out;
  for (const Cell& cell : summary.cells) {
    if (cell.shape == shape.name && cell.role != "aa" && cell.role != "null") out.push_back(&cell);
  }
  return out;
}

std::string TimeTable(const Summary& summary, const Shape& shape) {
  Table table(Cat("step | p50, µs: | ", FormatPercent(summary.statistics.confidence),
                  " CI, µs: | over the step before: | over the best peer: | correct | verdict"));
  const Peer* best = summary.FastestPeer(shape.name);
  for (const Cell* cell : Arms(summary, shape)) {
    // Of an arm beside the ladder no verdict speaks as a candidate.
    const Verdict* verdict = summary.FindVerdict(cell->variant, shape.name);
    table.AddRow({Cat(StepLabel(*cell), " ", Code(cell->variant)), FormatUs(cell->p50_us.value),
                  FormatUsInterval(cell->p50_us.low, cell->p50_us.high),
                  StepSpeedup(summary, *cell, verdict, /*with_interval=*/true),
                  best == nullptr || !summary.IsRanked(*cell)
                      ? std::string(kNone)
                      : FormatRatio(*best->p50_us.value / *cell->p50_us.value),
                  CorrectCell(*cell),
                  verdict == nullptr ? std::string(kNone) : Cat("**", verdict->verdict, "**")});
  }
  for (const Peer& peer : summary.peers) {
    if (peer.shape != shape.name) continue;
    table.AddRow({Cat("peer: ", PeerName(peer.name)), FormatUs(peer.p50_us.value),
                  FormatUsInterval(peer.p50_us.low, peer.p50_us.high), std::string(kNone),
                  std::string(kNone),
                  !peer.available ? "not available"
                  : !peer.correct ? "not checked"
                  : *peer.correct ? "yes"
                                  : "**no**",
                  std::string(kNone)});
  }
  return table.ToMarkdown();
}

// The budget of every arm, and what it lacks.
std::string BudgetTable(const Summary& summary, const Shape& shape) {
  if (shape.attention && shape.attention->causal)
    return "No budget: the formulas are of full masks.\n";
  Table table("step");
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
  std::set<std::string> missing;
  for (const Cell* cell : Arms(summary, shape)) {
    const absl::StatusOr<Budget> budget = BudgetOf(summary, shape, *cell);
    if (!budget.ok()) {
      notes.push_back(Cat("- ", Code(cell->variant),
                          " has no budget: ", std::string(budget.status().message()), ".\n"));
      continue;
    }
    std::vector<std::string> row = {Code(cell->variant)};
    for (const BudgetPart& part : budget->parts) {
      if (rows.empty()) table.AddColumn(Cat(part.name, ":"));
      row.push_back(part.us ? FormatSignificant(*part.us, 2) : std::string(kNone));
      if (!part.missing.empty()) missing.insert(part.missing);
    }
    row.push_back(Cat(budget->complete ? "" : "at least ", FormatSignificant(budget->sum_us, 3)));
    row.push_back(FormatUs(cell->p50_us.value));
    row.push_back(summary.IsRanked(*cell) && budget->complete
                      ? FormatSignificant(*cell->p50_us.value / budget->sum_us, 3) + "×"
                      : std::string(kNone));
    rows.push_back(std::move(row));
  }
  std::string out;
  if (!rows.empty()) {
    table.AddColumn("sum, µs:");
    table.AddColumn("reached, µs:");
    table.AddColumn("reached / sum:");
    for (std::vector<std::string>& row : rows) table.AddRow(std::move(row));
    out = table.ToMarkdown();
  }
  for (const std::string& name : missing) {
    notes.push_back(Cat("- The microbenchmarks quoted here lack ", Code(name), ".\n"));
  }
  for (const std::string& note : notes) Append(&out, &note == &notes[0] ? "\n" : "", note);
  return out;
}

}  // namespace

std::string SmallShapesSection(const Summary& summary, std::string_view picture_prefix) {
  if (summary.design != kSmallShapesDesign) return "";
  std::string out = Cat(
      "## Step by step, with a budget\n\nThe budget lists what each part takes at least, in µs: "
      "its "
      "work divided by a rate that was measured alone, or a latency. A kernel that reaches every "
      "floor and overlaps nothing takes the sum. The sum is no lower bound, because parts overlap. "
      "Peers run in their own process between ours. With a dependent launch the next call's "
      "prologue runs beside this call; the peers don't do that here.\n\n",
      BudgetFormulas(summary));
  for (const Shape* shape : ShapesMainFirst(summary)) {
    Append(&out, "\n### ", Code(shape->name), ", step by step\n\n", DescribeShape(*shape),
           ".\n\n![Steps at ", shape->name, "](",
           PicturePath(summary, picture_prefix, Cat(summary.design, "_ladder_", shape->name)),
           ")\n\n", TimeTable(summary, *shape), "\nThe budget, µs:\n\n",
           BudgetTable(summary, *shape));
  }
  return out;
}

}  // namespace warpledger::report
