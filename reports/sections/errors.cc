// SPDX-License-Identifier: Apache-2.0
// What toggles do to the errors of the outputs.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"
#include "reports/sections/sections.h"

namespace warpledger::report {
namespace {

bool IsListed(const Verdict& verdict) {
  return !verdict.errors.empty() || verdict.verdict == "BROKEN";
}

std::string BoldIf(bool bold, const std::string& text) {
  return bold ? Cat("**", text, "**") : text;
}

// Verdicts on one toggle against one base, on shapes where it does the same.
using Group = std::vector<const Verdict*>;

const ErrorChange* FindErrors(const Verdict& verdict, std::string_view kind) {
  return FindIn(verdict.errors, [&](const ErrorChange& errors) { return errors.inputs == kind; });
}

// An error of 0 has no ratio.
std::optional<double> RatioOf(const ErrorChange& errors) {
  const auto& [before, after] = errors.mean_err;
  if (before.value_or(0) <= 0 || after.value_or(0) <= 0) return std::nullopt;
  return *after / *before;
}

// A group's ratios of mean errors on one kind of inputs.
struct RatioRange {
  double low = 0;
  double high = 0;
  size_t without = 0;  // that have no ratio
};
RatioRange RatiosOf(const Group& group, std::string_view kind) {
  RatioRange out;
  for (const Verdict* verdict : group) {
    const ErrorChange* errors = FindErrors(*verdict, kind);
    const std::optional<double> ratio = errors == nullptr ? std::nullopt : RatioOf(*errors);
    if (!ratio) {
      ++out.without;
      continue;
    }
    out.low = out.high == 0 ? *ratio : std::min(out.low, *ratio);
    out.high = std::max(out.high, *ratio);
  }
  return out;
}

// "2.2e-05 → 4.8e-05, **2.18×**"; of several shapes the largest errors and the range of ratios.
std::string MeanCell(const Group& group, std::string_view kind, double most) {
  std::optional<double> largest[2] = {0, 0};
  for (const Verdict* verdict : group) {
    const ErrorChange* errors = FindErrors(*verdict, kind);
    if (errors == nullptr) return std::string(kNone);
    const std::optional<double> both[2] = {errors->mean_err.before, errors->mean_err.after};
    for (const int i : {0, 1}) {
      if (!both[i]) largest[i].reset();
      if (largest[i]) largest[i] = std::max(*largest[i], *both[i]);
    }
  }
  const std::string errors = Cat(FormatError(largest[0]), " → ", FormatError(largest[1]));
  const RatioRange ratios = RatiosOf(group, kind);
  if (ratios.without > 0) return errors;
  const std::string low = FormatRatio(ratios.low);
  const std::string high = FormatRatio(ratios.high);
  return Cat(errors, ", ",
             BoldIf(ratios.high > most || ratios.low < 1 / most,
                    low == high ? low : Cat(low, " to ", high)));
}

// The largest share of a limit over all kinds of inputs.
struct Share {
  bool given = false;      // by any of them
  bool unbounded = false;  // any error where the limit is 0, or one that is no number
  double largest = 0;

  bool TooMuch() const { return unbounded || largest > 1; }
  void Add(std::optional<double> share, bool missing_is_unbounded) {
    given = given || share || missing_is_unbounded;
    unbounded = unbounded || (!share && missing_is_unbounded);
    largest = std::max(largest, share.value_or(0));
  }
  std::string Text() const {
    if (!given) return std::string(kNone);
    return BoldIf(TooMuch(), unbounded ? "∞" : absl::StrFormat("%.0f%%", 100 * largest));
  }
};

struct Shares {
  Share mean, max, lse;
  bool TooMuch() const { return mean.TooMuch() || max.TooMuch() || lse.TooMuch(); }
};

Shares SharesWith(const Group& group) {
  Shares shares;
  for (const Verdict* verdict : group) {
    for (const ErrorChange& errors : verdict->errors) {
      shares.mean.Add(errors.mean_share.after, /*missing_is_unbounded=*/true);
      shares.max.Add(errors.max_share.after, /*missing_is_unbounded=*/true);
      shares.lse.Add(errors.lse_share.after, /*missing_is_unbounded=*/false);
    }
  }
  return shares;
}

std::string YesOrNo(std::optional<bool> correct) {
  if (!correct) return "not checked";
  return *correct ? "yes" : "**no**";
}

// Of the arm with the toggle; and of the other where that is wrong too, or alone.
std::string CorrectBoth(const Summary& summary, const Verdict& verdict) {
  const auto correct = [&](const std::string& arm) {
    const Cell* cell = summary.FindCell(arm, verdict.shape);
    return cell == nullptr ? std::nullopt : cell->correct;
  };
  std::string out = YesOrNo(correct(verdict.candidate));
  const std::optional<bool> without = correct(verdict.base);
  if (without != true) Append(&out, "; without it ", YesOrNo(without));
  return out;
}

// Whether a verdict says what a group does: the same arms, as right, and ratios that no two
// shapes set further apart than what counts as different.
bool Fits(const Summary& summary, const Group& group, const Verdict& verdict, double most) {
  const Verdict& first = *group.front();
  if (first.toggle != verdict.toggle || first.base != verdict.base ||
      first.candidate != verdict.candidate || first.errors.size() != verdict.errors.size() ||
      CorrectBoth(summary, first) != CorrectBoth(summary, verdict)) {
    return false;
  }
  Group both = group;
  both.push_back(&verdict);
  return std::all_of(verdict.errors.begin(), verdict.errors.end(), [&](const ErrorChange& errors) {
    const RatioRange ratios = RatiosOf(both, errors.inputs);
    return ratios.without == both.size() ||
           (ratios.without == 0 && ratios.high <= ratios.low * most);
  });
}

std::vector<Group> Groups(const Summary& summary, double most) {
  std::vector<Group> groups;
  for (const Verdict& verdict : summary.verdicts) {
    if (!IsListed(verdict)) continue;
    Group* found =
        FindIn(groups, [&](const Group& group) { return Fits(summary, group, verdict, most); });
    if (found == nullptr) {
      groups.push_back({&verdict});
    } else {
      found->push_back(&verdict);
    }
  }
  return groups;
}

std::string ErrorTable(const Summary& summary, double most) {
  std::vector<std::string> kinds;  // of inputs, in the order in which the judge lists them
  for (const Verdict& verdict : summary.verdicts) {
    for (const ErrorChange& errors : verdict.errors) AddOnce(errors.inputs, &kinds);
  }
  Table table("toggle | without it | with it | shapes");
  for (const std::string& kind : kinds) {
    table.AddColumn(Cat("mean error, ", Code(kind), ":"));
  }
  table.AddColumn("of the limits: mean, largest, log-sum-exp:");
  table.AddColumn("correct");
  for (const Group& group : Groups(summary, most)) {
    const Verdict& first = *group.front();
    std::vector<std::string> shapes;
    for (const Verdict* verdict : group) shapes.push_back(Code(verdict->shape));
    std::vector<std::string> row = {Code(first.toggle), Code(first.base), Code(first.candidate),
                                    JoinWords(shapes)};
    for (const std::string& kind : kinds) row.push_back(MeanCell(group, kind, most));
    const Shares shares = SharesWith(group);
    row.push_back(Cat(shares.mean.Text(), ", ", shares.max.Text(), ", ", shares.lse.Text()));
    row.push_back(CorrectBoth(summary, first));
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

// What an arm's kernels read K and V as; empty where the record's configuration is not of today.
std::optional<sdpa::KvStorage> StorageOf(const Summary& summary, const std::string& arm,
                                         const std::string& shape) {
  const Cell* cell = summary.FindCell(arm, shape);
  if (cell == nullptr) return std::nullopt;
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(cell->config);
  if (!config) return std::nullopt;
  return sdpa::KvStorageOf(*config);
}

// Which toggles of the table the two arms of which have references of their own; "" where none.
std::string StorageNote(const Summary& summary) {
  std::vector<std::string> toggles;
  bool queries = false;
  for (const Verdict& verdict : summary.verdicts) {
    if (!IsListed(verdict)) continue;
    const auto before = StorageOf(summary, verdict.base, verdict.shape);
    const auto after = StorageOf(summary, verdict.candidate, verdict.shape);
    if (!before || !after || *before == *after) continue;
    AddOnce(Code(verdict.toggle), &toggles);
    queries = queries || before->queries || after->queries;
  }
  if (toggles.empty()) return "";
  return Cat(
      "\n", JoinWords(toggles), toggles.size() == 1 ? " changes" : " change", " what ",
      queries ? "Q, " : "",
      "K and V are stored as, and each variant is compared with the reference of the numbers "
      "that it reads. So these are errors of the arithmetic",
      queries ? ", in which P is FP8 too" : "",
      ". The rounding of O counts among them: where softmax leaves a single key, O of fp16 K "
      "and V is a number of fp16 as it is, and O of 8-bit ones is not. What storing K and V "
      "in 8 bits itself costs is in `reports/cpu/dtypes.md`.\n");
}

// Why a verdict is BROKEN where no share of a limit says it: an arm was not run to its end, or
// not checked, or its bits vary.
std::string OtherReasons(const Summary& summary) {
  std::string out;
  for (const Verdict& verdict : summary.verdicts) {
    if (!IsListed(verdict)) continue;
    const Cell* with = summary.FindCell(verdict.candidate, verdict.shape);
    const bool wrong = with == nullptr || with->correct != true;
    if (verdict.errors.empty() || (wrong && !SharesWith({&verdict}).TooMuch())) {
      Append(&out, "- ", Code(verdict.candidate), " at ", Code(verdict.shape), ": ", verdict.reason,
             "\n");
    }
  }
  return out.empty() ? "" : Cat("\nBroken without an error over its limit:\n\n", out);
}

}  // namespace

std::string ErrorSection(const Summary& summary) {
  // It speaks of attention's outputs and of its rule of correctness.
  if (summary.provenance.SubjectName() != ablations::kFirstSubject) return "";
  if (!summary.statistics.error_ratio || summary.verdicts.empty()) return "";
  const double most = *summary.statistics.error_ratio;
  const std::string at_most = Cat(absl::StrFormat("%.4g", most),
                                  ", on any inputs where neither error is 0 "
                                  "(`ablations/judge/summarize.h` says why this factor).");
  if (std::none_of(summary.verdicts.begin(), summary.verdicts.end(), IsListed)) {
    return Cat(
        "## Errors\n\nEvery check passed, and no toggle changes the mean error of O by more than a "
        "factor of ",
        at_most, "\n");
  }
  return Cat(
      "## Errors\n\nToggles that change the accuracy against the FP64 reference. Mean errors are "
      "those of the elements of O, without the toggle → with it, by kind of inputs "
      "(`kernels/sdpa/problem/inputs.h`). A row is listed for the ratio of these errors (bold) or "
      "for a failed check. Shapes with nearly equal ratios share a row, which has the largest "
      "errors and the range of the ratios. No other toggle or shape failed a check or changes the "
      "mean error by more than a factor of ",
      at_most,
      "\n\nThe column “of the limits” has the largest error with the toggle over all inputs, in "
      "percent of its limit in the correctness rule (`ablations/subjects/sdpa/correctness.h`). "
      "Above 100% the results are wrong. ∞ is any error where the limit is 0, as where O is "
      "exactly V, "
      "and one that is no number.\n\n",
      ErrorTable(summary, most), StorageNote(summary), OtherReasons(summary));
}

}  // namespace warpledger::report
