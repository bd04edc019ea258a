// SPDX-License-Identifier: Apache-2.0
#include "reports/sections/published.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

// Of the record's shapes with the published head dimension and mask, the one whose length is
// nearest; null when there is none.
const Shape* NearestShape(const Summary& summary, const sdpa::Problem& problem) {
  const Shape* nearest = nullptr;
  const auto distance = [&](const Shape& s) {
    return std::abs(s.attention->seq_kv - problem.seq_kv);
  };
  for (const Shape& shape : summary.shapes) {
    if (!shape.attention || shape.attention->head_dim != problem.head_dim ||
        shape.attention->causal != problem.causal) {
      continue;
    }
    if (nearest == nullptr || distance(shape) < distance(*nearest)) nearest = &shape;
  }
  return nearest;
}

std::string Rate(const Summary& summary, std::string_view variant, const Shape& shape) {
  const Cell* cell = summary.FindCell(variant, shape.name);
  return cell == nullptr || !summary.IsRanked(*cell) ? std::string(kNone)
                                                     : FormatTflops(cell->tflops);
}

// Of time(before) / time(after), the same the other way round.
Estimate Inverse(const Estimate& ratio) {
  const auto inverse = [](const std::optional<double>& x) {
    return x ? std::optional<double>(1 / *x) : std::nullopt;
  };
  return {.value = inverse(ratio.value), .low = inverse(ratio.high), .high = inverse(ratio.low)};
}

}  // namespace

std::string PublishedSection(const Summary& summary) {
  const PublishedAblation& theirs = kFlashAttention3;
  if (std::none_of(std::begin(theirs.arms), std::end(theirs.arms),
                   [&](const PublishedArm& arm) { return arm.design == summary.design; })) {
    return "";
  }
  const sdpa::Problem& p = theirs.problem;
  std::string out =
      Cat("## Beside ", theirs.whose, "'s own ablation\n\nTheirs: ", theirs.source, "; ",
          theirs.gpu, ", batch ", p.batch, ", ", p.heads_q, " heads, S = ", p.seq_kv, ", head_dim ",
          p.head_dim, p.causal ? ", causal" : ", full", ". ");
  const Shape* shape = NearestShape(summary, p);
  if (shape == nullptr) {
    out += "This record has no shape of that head dimension and mask to set beside it.\n\n";
  } else {
    Append(&out, "Ours: ", Code(shape->name), " (", DescribeShape(*shape), ") on ",
           summary.provenance.gpu.name,
           ". Another GPU, clock and size: compare the ratios, not the rates.\n\n");
  }
  Table table(
      "left out | theirs: without → whole, TFLOP/s: | ratio: | our toggle | ours: without → whole, "
      "TFLOP/s: | ratio, boards of the kind: | verdict | remark");
  for (const PublishedArm& arm : theirs.arms) {
    std::vector<std::string> row = {
        std::string(arm.without),
        Cat(FormatSignificant(arm.tflops, 3), " → ", FormatSignificant(theirs.whole_tflops, 3)),
        FormatRatio(theirs.whole_tflops / arm.tflops)};
    row.resize(7, std::string(kNone));
    std::string remark(arm.remark);
    const auto also = [&remark](std::string_view text) {
      Append(&remark, remark.empty() ? "" : "; ", text);
    };
    const std::string_view id = sdpa::ToggleId(arm.toggle);
    row[3] = arm.leaves_out ? Cat("without ", Code(id)) : Code(id);
    const Verdict* verdict = shape == nullptr || arm.design != summary.design
                                 ? nullptr
                                 : FindToggleVerdict(summary, id, shape->name);
    if (verdict != nullptr) {
      const std::string_view without = arm.leaves_out ? verdict->candidate : verdict->base;
      const std::string_view whole = arm.leaves_out ? verdict->base : verdict->candidate;
      row[4] = Cat(Rate(summary, without, *shape), " → ", Rate(summary, whole, *shape));
      if (HasMeaning(*verdict)) {
        row[5] = RatioWithInterval(arm.leaves_out ? Inverse(verdict->ratio) : verdict->ratio);
      }
      row[6] = Cat("**", verdict->verdict, "**");
      if (arm.leaves_out) also("the verdict is of leaving it out");
      if (!Dependents(summary, *verdict).empty()) also("what needs it goes with it");
    } else if (arm.design != summary.design) {
      also(Cat("judged by the design ", Code(arm.design)));
    } else if (shape != nullptr) {
      also("the record doesn't judge it there");
    }
    row.push_back(remark.empty() ? std::string(kNone) : remark);
    table.AddRow(row);
  }
  return out + table.ToMarkdown();
}

}  // namespace warpledger::report
