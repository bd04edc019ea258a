// SPDX-License-Identifier: Apache-2.0
// The pages of the designs beyond the ladder: one_on, leave_one_out, factorial.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "reports/model/arm_names.h"
#include "reports/model/derived/code_change.h"
#include "reports/model/derived/measured_claims.h"
#include "reports/model/derived/verdict_pictures.h"
#include "reports/model/describe.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

constexpr size_t kMostOpcodesInRow = 4;  // which has much else to say

bool IsFactorial(const Summary& summary) { return !summary.attribution.empty(); }

// A ratio as the gain in speed that people say: 1.031 is "+3.1%".
std::string Gain(std::optional<double> ratio) {
  return ratio ? absl::StrFormat("%+.1f%%", 100 * (*ratio - 1)) : std::string(kNone);
}

std::string GainWithInterval(const Estimate& ratio) {
  if (!ratio.value) return std::string(kNone);
  std::string out = Gain(ratio.value);
  if (ratio.low && ratio.high) Append(&out, " [", Gain(ratio.low), ", ", Gain(ratio.high), "]");
  return out;
}

// "`cell:vector_loads`", or what the empty cell is in words.
std::string OnTopOf(const std::string& cell) {
  return cell == "cell:none" ? "the background alone" : Code(cell);
}

std::vector<const Attribution*> AttributionAt(const Summary& summary, const Shape& shape) {
  std::vector<const Attribution*> out;
  for (const Attribution& row : summary.attribution) {
    if (row.shape == shape.name) out.push_back(&row);
  }
  return out;
}

// Interactions whose interval leaves out 1, strongest first.
std::vector<const Interaction*> StrongInteractions(const Summary& summary, const Shape& shape) {
  std::vector<const Interaction*> out;
  for (const Interaction& row : summary.interactions) {
    if (row.shape != shape.name || !row.ratio.value || !row.ratio.low || !row.ratio.high) continue;
    if (*row.ratio.low > 1 || *row.ratio.high < 1) out.push_back(&row);
  }
  std::stable_sort(out.begin(), out.end(), [](const Interaction* a, const Interaction* b) {
    return std::fabs(std::log(*a->ratio.value)) > std::fabs(std::log(*b->ratio.value));
  });
  return out;
}

// What a ladder can't show: it meets each toggle in one place.
std::string HiddenByLadders(const Summary& summary, const Shape& shape) {
  std::string out;
  for (const Attribution* row : AttributionAt(summary, shape)) {
    if (!row->first.value || !row->last.value) continue;
    Append(&out, "- ", Code(row->toggle), ": ", GainWithInterval(row->first), " on ",
           OnTopOf(row->first_base.value_or("")), ", ", GainWithInterval(row->last),
           " once all else is on (", OnTopOf(row->last_base.value_or("")), ").\n");
  }
  if (!out.empty()) {
    out = Cat(
        "\nA ladder measures each toggle in one place only. Here each toggle is measured twice: "
        "alone (with only the toggles that it needs), and last (with all other toggles on). "
        "Percentages are gains in speed:\n\n",
        out);
  }
  const std::vector<const Interaction*> strong = StrongInteractions(summary, shape);
  if (strong.empty()) return out;
  constexpr size_t kMost = 5;
  Append(&out, "\nThe strongest interactions:\n\n");
  for (size_t i = 0; i < std::min(kMost, strong.size()); ++i) {
    const Interaction& row = *strong[i];
    Append(&out, "- ", Code(row.b), ": ", Gain(row.b_without_a), " without ", Code(row.a), ", ",
           Gain(row.b_with_a), " with it: the two ",
           *row.ratio.value > 1 ? "help each other" : "share a gain", " (interaction ",
           RatioWithInterval(row.ratio), ").\n");
  }
  return out;
}

std::string TotalSentence(const Summary& summary, const Shape& shape) {
  const std::vector<const Attribution*> rows = AttributionAt(summary, shape);
  if (rows.empty()) return "";
  if (!rows[0]->total_log) {
    return Cat("At ", Code(shape.name), " shares can't be computed: ", rows[0]->reason, ".");
  }
  std::vector<const Attribution*> order = rows;
  std::stable_sort(order.begin(), order.end(), [](const Attribution* a, const Attribution* b) {
    return a->shapley_log.value_or(0) > b->shapley_log.value_or(0);
  });
  std::vector<std::string> shares;
  for (const Attribution* row : order) {
    shares.push_back(Cat(Code(row->toggle), " ",
                         row->shapley_share ? absl::StrFormat("%.1f%%", 100 * *row->shapley_share)
                                            : std::string(kNone)));
  }
  return Cat("At ", Code(shape.name), " all toggles together gain ",
             FormatRatio(std::exp(*rows[0]->total_log)),
             ". Their Shapley shares of the gain's logarithm: ", JoinWords(shares), ".");
}

std::string AttributionTable(const Summary& summary, const Shape& shape) {
  Table table(
      "toggle | alone, with what it needs: | main effect: | pairs: | last, all else on: | Shapley "
      "factor: | share:");
  const std::vector<const Attribution*> rows = AttributionAt(summary, shape);
  for (const Attribution* row : rows) {
    Estimate factor;
    if (row->shapley_log) factor.value = std::exp(*row->shapley_log);
    if (row->shapley_log_low) factor.low = std::exp(*row->shapley_log_low);
    if (row->shapley_log_high) factor.high = std::exp(*row->shapley_log_high);
    table.AddRow({Code(row->toggle), RatioWithInterval(row->first),
                  RatioWithInterval(row->main_effect), Cat(row->n_pairs),
                  RatioWithInterval(row->last), RatioWithInterval(factor),
                  row->shapley_share ? absl::StrFormat("%.1f%%", 100 * *row->shapley_share)
                                     : std::string(kNone)});
  }
  std::string out = table.ToMarkdown();
  if (!rows.empty() && !rows[0]->reason.empty()) Append(&out, "\n", rows[0]->reason, ".\n");
  return out;
}

std::string InteractionTable(const Summary& summary, const Shape& shape) {
  Table table(
      "pair | interaction: | first without second: | first with second: | second without first: | "
      "second with first: | remark");
  for (const Interaction& row : summary.interactions) {
    if (row.shape != shape.name) continue;
    table.AddRow({Cat(Code(row.a), ", ", Code(row.b)), RatioWithInterval(row.ratio),
                  FormatRatio(row.a_without_b), FormatRatio(row.a_with_b),
                  FormatRatio(row.b_without_a), FormatRatio(row.b_with_a),
                  row.reason.empty() ? std::string(kNone) : row.reason});
  }
  return table.ToMarkdown();
}

// At equal clocks a ratio can differ from that of the times beside it, which is said then.
std::string RatioCell(const Verdict& verdict, const Cell* base, const Cell* candidate) {
  if (!HasMeaning(verdict)) return std::string(kNone);
  const std::string ratio = RatioWithInterval(verdict.ratio);
  if (verdict.estimand != summary::kCycles || base == nullptr || candidate == nullptr ||
      !base->p50_us.value || !candidate->p50_us.value) {
    return ratio;
  }
  return Cat(ratio, " in cycles (in time ",
             FormatRatio(*base->p50_us.value / *candidate->p50_us.value), ")");
}

std::string VerdictTable(const Summary& summary, const Shape& shape) {
  Table table(
      Cat("claim | on top of | without, p50 µs: | with, p50 µs: | ratio: | gate: | verdict | ",
          kResourceColumn, " | ", kInstructionColumn));
  for (const Verdict& verdict : summary.verdicts) {
    if (verdict.shape != shape.name) continue;
    const Cell* base = summary.FindCell(verdict.base, shape.name);
    const Cell* candidate = summary.FindCell(verdict.candidate, shape.name);
    const std::string claim = ClaimText(summary, verdict);
    std::string without = Code(ArmName(summary, verdict.base));
    if (const std::string dependents = Dependents(summary, verdict); !dependents.empty()) {
      Append(&without, ", also without ", dependents);
    }
    table.AddRow({Code(claim.empty() ? verdict.toggle : claim), without,
                  base != nullptr ? FormatUs(base->p50_us.value) : std::string(kNone),
                  candidate != nullptr ? FormatUs(candidate->p50_us.value) : std::string(kNone),
                  RatioCell(verdict, base, candidate), FormatLimit(verdict.gate),
                  Cat("**", verdict.verdict, "**"), ResourceChange(verdict),
                  InstructionChange(summary, verdict, kMostOpcodesInRow)});
  }
  return table.ToMarkdown();
}

std::string Explanation(const Summary& summary) {
  std::string out = Cat(
      "- A **ratio** is time(without the toggle) / time(with it): above 1 is faster. At the power "
      "limit a ratio compares SM cycles, which are times at equal clocks.\n"
      "- The **interval** of a verdict says what ",
      summary.TellsOtherBoards() ? "another board of the kind would measure"
                                 : "this board measures in the conditions of this run",
      ", at the level of its claim's family.",
      IsFactorial(summary)
          ? Cat(" Intervals of attribution are at ", FormatPercent(summary.statistics.confidence),
                " each; they decide no verdict.")
          : "",
      "\n- ", kHowToReadChanges, "\n");
  if (std::any_of(summary.verdicts.begin(), summary.verdicts.end(),
                  [&](const Verdict& v) { return !Dependents(summary, v).empty(); })) {
    out +=
        "- Leaving a toggle out also leaves out the toggles that need it. Its row then says "
        "`(+dependents)` and names them; the ratio is of all of them together.\n";
  }
  if (!IsFactorial(summary)) return out;
  out +=
      "- The **main effect** is the geometric mean of the toggle's effect over every combination "
      "of the others that is possible with and without it (`pairs`).\n"
      "- The **interaction** of two toggles is the effect of one with the other on, divided by its "
      "effect with the other off, over the combinations where all four are possible. Above 1 the "
      "two help each other; below 1 they share one gain.\n"
      "- The **Shapley share** is the gain that the toggle adds when it is switched on, averaged "
      "over all orders of switching the toggles on. A toggle waits until the toggles that it needs "
      "are on, and shares its gain with them. The shares add up to the whole gain.\n";
  return out;
}

}  // namespace

std::string DesignTitle(const Summary& summary) {
  if (summary.design == "hopper") return "The Hopper kernel, toggle by toggle,";
  if (summary.design == "hopper_small") return "Small problems on Hopper, toggle by toggle,";
  if (summary.design == "hopper_plus") return "The Hopper kernel beyond its ladder";
  // Of records from before it was parted by head dimension.
  if (summary.design == "hopper_lengths") return "The Hopper kernel over lengths";
  for (const char* dim : {"64", "128", "256"}) {
    if (summary.design == Cat("hopper_d", dim)) {
      return Cat("The Hopper kernel over lengths at head_dim ", dim);
    }
  }
  if (summary.design == "hopper_tiles") return "Tiles of the Hopper kernel";
  if (summary.design == "hopper_bf16") return "The Hopper kernel in fp16 and in bf16";
  if (summary.design == "hopper_fp8") return "The Hopper kernel in FP8";
  if (summary.design == "hopper_decode") return "Decoding with the Hopper kernel";
  if (summary.design == "hopper_gqa") return "Prompts with grouped heads in the Hopper kernel";
  if (summary.design == "stage2_plus") return "The wmma kernel beyond the ladder";
  if (summary.design == "wmma_d128") return "The wmma kernel at head_dim 128";
  if (summary.design == "one_on") return "Each toggle alone";
  if (summary.design == "leave_one_out") return "The full kernel without one toggle";
  if (summary.design == "hopper_leave_one_out") return "The Hopper kernel without one toggle";
  if (IsFactorial(summary)) return "Factorial of toggles";
  return Cat("Design ", summary.design);
}

std::string DesignSummary(const Summary& summary, std::string_view picture_prefix) {
  const auto picture = [&](std::string_view name) {
    return PicturePath(summary, picture_prefix, name);
  };
  const Shape& main = summary.MainShape();
  std::string out = "## Summary\n\n";
  if (IsFactorial(summary)) {
    Append(&out, TotalSentence(summary, main), " ", ControlSentence(summary), "\n",
           HiddenByLadders(summary, main));
  } else if (summary.verdicts.empty()) {
    Append(&out,
           "No toggle is judged here: the design only compares variants with their peers.\n\n",
           ControlSentence(summary), "\n");
  } else {
    const bool in_cycles =
        std::any_of(summary.verdicts.begin(), summary.verdicts.end(), [&](const Verdict& verdict) {
          return verdict.shape == main.name && verdict.estimand == summary::kCycles;
        });
    Append(&out, "Verdict on each toggle at ", Code(main.name),
           summary.TellsOtherBoards() ? ", on boards of this kind, " : ", on this board, ",
           in_cycles ? "in SM cycles (time at equal clocks)" : "in time", ":\n\n",
           VerdictSentences(summary, main), "\n", ControlSentence(summary), "\n");
  }
  Append(&out, "\n## How to read it\n\n", Explanation(summary));
  // A design of controls alone, made to stand beside peers, has no effect to draw.
  if (summary.verdicts.empty()) return out;
  out += "\n## Pictures\n\n";
  if (IsFactorial(summary)) {
    for (const Shape* shape : ShapesMainFirst(summary)) {
      if (!AttributionAt(summary, *shape)[0]->total_log) continue;
      Append(&out, "![Shapley shares at ", shape->name, "](",
             picture(Cat("factorial_", shape->name)), ")\n\n");
      if (std::none_of(summary.interactions.begin(), summary.interactions.end(),
                       [&](const Interaction& row) {
                         return row.shape == shape->name && row.ratio.value.has_value();
                       })) {
        continue;
      }
      Append(&out, "![Interactions at ", shape->name, "](",
             picture(Cat("factorial_interactions_", shape->name)), ")\n\n");
    }
  } else {
    return out + VerdictPictures(summary, picture_prefix, Cat(summary.design, "_"), "toggle");
  }
  out.pop_back();  // one empty line between sections is put by the caller
  return out;
}

std::string DesignTables(const Summary& summary) {
  std::string out;
  for (const Shape* shape : ShapesMainFirst(summary)) {
    Append(&out, "## ", Code(shape->name), "\n\n", DescribeShape(*shape), ".\n\n");
    if (IsFactorial(summary)) {
      Append(&out, TotalSentence(summary, *shape), "\n\n", AttributionTable(summary, *shape),
             "\nPairs:\n\n", InteractionTable(summary, *shape),
             "\nEvery combination against the same one without its last toggle:\n\n");
    }
    Append(&out, VerdictTable(summary, *shape), "\n");
  }
  if (!summary.infeasible.empty()) {
    out += "## Combinations that are not possible\n\n";
    for (const InfeasibleCell& cell : summary.infeasible) {
      Append(&out, "- ", Code(cell.variant), ": ");
      if (!cell.toggle || !cell.missing) {
        out += "the rules of the registry forbid it\n";
      } else if (!cell.why.empty()) {
        Append(&out, "`NOT_APPLICABLE`: ", Code(*cell.toggle), " can't go with ",
               Code(*cell.missing), ", for ", cell.why, "\n");
      } else {
        Append(&out, Code(*cell.toggle), " needs ", Code(*cell.missing), "\n");
      }
    }
    out += "\n";
  }
  out.pop_back();
  return out;
}

}  // namespace warpledger::report
