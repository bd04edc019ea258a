// SPDX-License-Identifier: Apache-2.0
#include "reports/model/describe.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_split.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/registry/registry.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"

namespace warpledger::report {

std::string Code(std::string_view text) { return Cat("`", text, "`"); }

std::string PeerName(std::string_view name) {
  if (name.starts_with("peer:")) name.remove_prefix(5);
  return std::string(name);
}

std::string Processes(int64_t n) { return Cat(n, n == 1 ? " process" : " processes"); }

std::string_view StepId(const Cell& cell) {
  return cell.toggle.empty() ? std::string_view(cell.variant) : std::string_view(cell.toggle);
}

std::string StepLabel(const Cell& cell) {
  return cell.label.empty() ? std::string(StepId(cell)) : cell.label;
}

namespace {

std::string DescribeAttention(const Attention& a) {
  std::string heads = Count(a.heads_q, "head");
  if (a.heads_kv != a.heads_q) Append(&heads, " (", a.heads_kv, " of K/V)");
  return Cat("batch ", a.batch, ", ", heads, ", ", a.seq_q, " queries × ", a.seq_kv,
             " keys, head_dim ", a.head_dim, a.causal ? ", causal" : "",
             a.dtype == "fp16" ? "" : Cat(", ", a.dtype));
}

// plots/render.py makes the same.
std::string Suffix(const Summary& summary) {
  return Cat(CacheSuffix(summary.provenance.cache), summary.provenance.alone ? "_alone" : "");
}

}  // namespace

std::string DescribeShape(const Shape& shape) {
  return Cat(shape.attention ? DescribeAttention(*shape.attention) : shape.parameters, "; ",
             FormatSignificant(shape.flops / 1e9, 3), " GFLOP, ",
             FormatSignificant(shape.min_bytes / 1e6, 3), " MB at least");
}

std::string_view CacheSuffix(std::string_view cache) {
  return cache == ablations::kCacheCold ? "_cold" : "";
}

std::string PlainName(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) c = '-';
  }
  return plain;
}

std::string ReportFileName(std::string_view design, std::string_view cache) {
  return Cat(PlainName(design), CacheSuffix(cache), ".md");
}

std::string ReportFileName(const Summary& summary) {
  return Cat(PlainName(summary.design), Suffix(summary), ".md");
}

std::string PicturePath(const Summary& summary, std::string_view prefix, std::string_view name) {
  return Cat(prefix, PlainName(name), Suffix(summary), ".svg");
}

std::vector<const Shape*> ShapesMainFirst(const Summary& summary) {
  const Shape& main = summary.MainShape();
  std::vector<const Shape*> out = {&main};
  for (const Shape& shape : summary.shapes) {
    if (&shape != &main) out.push_back(&shape);
  }
  return out;
}

std::vector<std::string> StepToggles(const Summary& summary) {
  std::vector<std::string> out;
  for (const Verdict& verdict : summary.verdicts) AddOnce(verdict.toggle, &out);
  return out;
}

const Verdict* FindToggleVerdict(const Summary& summary, std::string_view toggle,
                                 std::string_view shape) {
  return FindIn(summary.verdicts, [&](const Verdict& verdict) {
    return verdict.toggle == toggle && verdict.shape == shape;
  });
}

std::string RatioWithInterval(const Estimate& ratio) {
  if (!ratio.value) return std::string(kNone);
  return Cat(FormatRatio(ratio.value), " ", FormatRatioInterval(ratio.low, ratio.high));
}

bool HasMeaning(const Verdict& verdict) {
  return verdict.verdict != "BROKEN" && verdict.verdict != "INVALID" &&
         verdict.verdict != "NOT_APPLICABLE";
}

std::string NamedRatio(const Verdict& verdict) {
  if (!HasMeaning(verdict) || !verdict.ratio.value) return Code(verdict.toggle);
  return Cat(Code(verdict.toggle), " (", FormatRatio(verdict.ratio.value), ")");
}

std::string_view VerdictMeaning(std::string_view verdict) {
  if (verdict == "ADOPT") return "met the gate";
  if (verdict == "REAL_BELOW_GATE") return "faster, but below the gate";
  if (verdict == "NEUTRAL") return "no change";
  if (verdict == "REGRESSION") return "slower";
  if (verdict == "INCONCLUSIVE") return "not decided by these samples";
  if (verdict == "BROKEN") return "wrong results, never ranked";
  if (verdict == "INVALID") return "the timing is no evidence";
  return "does not apply";
}

Range PredictedRange(const ablations::ClaimPrediction& predicted, const Verdict* verdict) {
  if (verdict != nullptr && verdict->predicted_low && verdict->predicted_high) {
    return {*verdict->predicted_low, *verdict->predicted_high};
  }
  return {predicted.low, predicted.high};
}

Miss MissOf(const Verdict& verdict, const Range& range) {
  if (!HasMeaning(verdict)) return Miss::kUnknown;
  if (verdict.prediction_held == true) return Miss::kNone;
  if (!verdict.prediction_held || !verdict.ratio.value) return Miss::kUnknown;
  if (*verdict.ratio.value < range.low) return Miss::kLow;
  if (*verdict.ratio.value > range.high) return Miss::kHigh;
  return Miss::kUnknown;
}

std::string PredictionOutcome(const ablations::ClaimPrediction& predicted, const Verdict* verdict) {
  const std::string shape = Code(sdpa::ShownName(predicted.problem));
  if (verdict == nullptr) {
    return Cat("The record has no verdict at ", shape, ", so the prediction is not judged.");
  }
  const Range range = PredictedRange(predicted, verdict);
  const bool removes = std::any_of(std::begin(sdpa::kToggles), std::end(sdpa::kToggles),
                                   [&](const sdpa::ToggleRow& row) {
                                     return row.id == verdict->toggle && row.removes_technique;
                                   });
  const std::string measured = Cat(FormatRatio(verdict->ratio.value), " ",
                                   FormatRatioInterval(verdict->ratio.low, verdict->ratio.high));
  switch (MissOf(*verdict, range)) {
    case Miss::kNone:
      return Cat("It **held**: ", measured, " at ", shape,
                 verdict->ratio.value &&
                         (*verdict->ratio.value < range.low || *verdict->ratio.value > range.high)
                     ? ": the interval reaches the range, the ratio itself does not."
                     : ".");
    case Miss::kLow:
      return Cat(
          "It **missed low**: ", measured, " at ", shape, " is ",
          FormatRatio(range.low / *verdict->ratio.value), " below the range's lower end. ",
          removes ? "Leaving the technique out costs more than the reason above predicts."
                  : "The gain is smaller than the reason above predicts: either the mechanism was "
                    "not the limit at this point of the ladder, or it has a cost that the reason "
                    "leaves out.");
    case Miss::kHigh:
      return Cat("It **missed high**: ", measured, " at ", shape, " is ",
                 FormatRatio(*verdict->ratio.value / range.high), " above the range's upper end. ",
                 removes
                     ? "Leaving the technique out costs less than the reason above predicts."
                     : "The gain is larger than the reason above predicts: the mechanism may have "
                       "removed a limit that the reason does not name.");
    case Miss::kUnknown:
      break;
  }
  return Cat("Not judged: the verdict at ", shape, " is ", Code(verdict->verdict), ".");
}

std::string CorrectCell(const Cell& cell) {
  if (!cell.correct) return "not checked";
  std::string out = *cell.correct ? "yes" : "**no**";
  if (cell.max_err) {
    Append(&out, " (", FormatError(cell.max_err));
    if (cell.max_err_rule) {
      Append(&out, *cell.correct ? "; limit " : " against ", FormatError(cell.max_err_rule));
    }
    out += ")";
  }
  return out;
}

std::string VerdictCell(const Cell& cell, const Verdict* verdict) {
  if (cell.role == "base") return cell.correct == false ? "**BROKEN**" : "first step";
  if (verdict == nullptr) return std::string(kNone);
  return Cat("**", verdict->verdict, "**");
}

std::string Remark(const Verdict& verdict) {
  if (verdict.verdict != "INCONCLUSIVE" || !verdict.mde_ratio) return verdict.reason;
  return Cat(verdict.reason, verdict.reason.empty() ? "" : "; ",
             "smallest effect these samples could show: ", FormatRatio(verdict.mde_ratio));
}

std::string StepSpeedup(const Summary& summary, const Cell& cell, const Verdict* verdict,
                        bool with_interval) {
  if (verdict == nullptr || !verdict->ratio.value || !summary.IsRanked(cell) ||
      !HasMeaning(*verdict)) {
    return std::string(kNone);
  }
  std::string out = FormatRatio(verdict->ratio.value);
  if (with_interval) {
    Append(&out, " ", FormatRatioInterval(verdict->ratio.low, verdict->ratio.high));
  }
  return out;
}

std::string GainOverFirst(const Summary& summary, const Cell& cell) {
  if (cell.role == "base" || !summary.IsRanked(cell)) return std::string(kNone);
  return FormatRatio(GainOf(cell).value);
}

std::string Dependents(const Summary& summary, const Verdict& verdict) {
  const Cell* base = summary.FindCell(verdict.base, verdict.shape);
  const Cell* candidate = summary.FindCell(verdict.candidate, verdict.shape);
  if (base == nullptr || candidate == nullptr) return "";
  // "a+b=2+c" as {"a", "b", "c"}.
  const auto toggles_of = [](const Cell& cell) {
    std::vector<std::string> ids = absl::StrSplit(cell.config, '+');
    for (std::string& id : ids) id = id.substr(0, id.find('='));
    return ids;
  };
  const std::vector<std::string> there = toggles_of(*base);
  std::vector<std::string> gone;
  for (const std::string& id : toggles_of(*candidate)) {
    if (id == verdict.toggle || summary.FindClaim(id) == nullptr) continue;
    if (std::find(there.begin(), there.end(), id) == there.end()) gone.push_back(Code(id));
  }
  return JoinWords(gone);
}

std::string ControlSentence(const Summary& summary) {
  if (summary.controls_summary.trials == 0)
    return "No control was timed, so nothing bounds the false verdicts.";
  return Cat("The controls gave ", Count(summary.controls_summary.false_verdicts, "false verdict"),
             " in ", Count(summary.controls_summary.trials, "trial"), " (",
             FormatPercent(static_cast<double>(summary.controls_summary.false_verdicts) /
                           static_cast<double>(summary.controls_summary.trials)),
             "); ", summary.controls_summary.intervals_holding_one, " of ",
             Count(summary.controls_summary.trials, "control interval"),
             " contain 1 (expected: ", FormatPercent(summary.statistics.confidence), ").");
}

}  // namespace warpledger::report
