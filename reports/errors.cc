// What toggles do to the errors of the outputs.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/sdpa/kv_storage.h"
#include "kernels/sdpa/variant.h"
#include "reports/describe.h"
#include "reports/sections.h"
#include "reports/text.h"

namespace warpledger::report {
namespace {

using Align = Table::Align;

bool IsListed(const Verdict& verdict) {
  return !verdict.errors.empty() || verdict.verdict == "BROKEN";
}

std::string BoldIf(bool bold, const std::string& text) {
  return bold ? Cat("**", text, "**") : text;
}

// "2.2e-05 → 4.8e-05, **2.18×**"; an error of 0 has no ratio.
std::string MeanCell(const ErrorChange& errors, double most) {
  const auto& [before, after] = errors.mean_err;
  std::string out = Cat(FormatError(before), " → ", FormatError(after));
  if (before.value_or(0) > 0 && after.value_or(0) > 0) {
    const double ratio = *after / *before;
    Append(&out, ", ", BoldIf(ratio > most || ratio < 1 / most, FormatRatio(ratio)));
  }
  return out;
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

Shares SharesWith(const Verdict& verdict) {
  Shares shares;
  for (const ErrorChange& errors : verdict.errors) {
    shares.mean.Add(errors.mean_share.after, /*missing_is_unbounded=*/true);
    shares.max.Add(errors.max_share.after, /*missing_is_unbounded=*/true);
    shares.lse.Add(errors.lse_share.after, /*missing_is_unbounded=*/false);
  }
  return shares;
}

std::string YesOrNo(std::optional<bool> correct) {
  if (!correct) return "not checked";
  return *correct ? "yes" : "**no**";
}

// Of the arm with the toggle; and of the other where that is wrong too, or alone.
std::string CorrectBoth(const Cell* without, const Cell* with) {
  std::string out = YesOrNo(with != nullptr ? with->correct : std::nullopt);
  if (without == nullptr || without->correct != true) {
    Append(&out, "; without it ", YesOrNo(without != nullptr ? without->correct : std::nullopt));
  }
  return out;
}

std::optional<sdpa::KvStorage> StorageOf(const Cell* cell) {
  if (cell == nullptr) return std::nullopt;
  const std::optional<sdpa::Config> config = sdpa::ConfigFromName(cell->config);
  if (!config) return std::nullopt;
  return sdpa::KvStorageOf(*config);
}

void AddOnce(const std::string& text, std::vector<std::string>* list) {
  if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
}

// The kinds of inputs, in the order in which the judge lists them.
std::vector<std::string> Kinds(const Summary& summary) {
  std::vector<std::string> kinds;
  for (const Verdict& verdict : summary.verdicts) {
    for (const ErrorChange& errors : verdict.errors) AddOnce(errors.inputs, &kinds);
  }
  return kinds;
}

}  // namespace

std::string ErrorSection(const Summary& summary) {
  if (!summary.statistics.error_ratio || summary.verdicts.empty()) return "";
  const double most = *summary.statistics.error_ratio;
  const std::string bound =
      Cat(" lie further than a factor of ", absl::StrFormat("%.4g", most),
          " from that of the base, on any inputs where neither is 0 (`ablations/summarize.h` says "
          "why it is this factor)");
  std::string out = "## Errors\n\n";
  if (std::none_of(summary.verdicts.begin(), summary.verdicts.end(), IsListed)) {
    return Cat(out, "Every check passed, and with no toggle does the mean error of O", bound,
               ".\n");
  }
  const std::vector<std::string> kinds = Kinds(summary);
  std::vector<Table::Column> columns = {{"toggle"}, {"without it"}, {"with it"}, {"shape"}};
  for (const std::string& kind : kinds) {
    columns.push_back({Cat("mean error, ", Code(kind)), Align::kRight});
  }
  columns.push_back({"of the limits: mean, largest, log-sum-exp", Align::kRight});
  columns.push_back({"correct"});
  Table table(columns);
  std::vector<std::string> reasons;
  std::vector<std::string> storing;  // toggles that change what K and V are stored as
  bool queries = false;              // and Q
  for (const Verdict& verdict : summary.verdicts) {
    if (!IsListed(verdict)) continue;
    const Cell* without = summary.FindCell(verdict.base, verdict.shape);
    const Cell* with = summary.FindCell(verdict.candidate, verdict.shape);
    const Shares shares = SharesWith(verdict);
    std::vector<std::string> row = {Code(verdict.toggle), Code(verdict.base),
                                    Code(verdict.candidate), Code(verdict.shape)};
    for (const std::string& kind : kinds) {
      const auto found =
          std::find_if(verdict.errors.begin(), verdict.errors.end(),
                       [&](const ErrorChange& errors) { return errors.inputs == kind; });
      row.push_back(found == verdict.errors.end() ? std::string(kNone) : MeanCell(*found, most));
    }
    row.push_back(Cat(shares.mean.Text(), ", ", shares.max.Text(), ", ", shares.lse.Text()));
    row.push_back(CorrectBoth(without, with));
    table.AddRow(std::move(row));
    // Where no share says it: it was not run to its end, or not checked, or its bits vary.
    const bool wrong = with == nullptr || with->correct != true;
    if (verdict.errors.empty() || (wrong && !shares.TooMuch())) {
      reasons.push_back(Cat("- ", Code(verdict.candidate), " at ", Code(verdict.shape), ": ",
                            verdict.reason, "\n"));
    }
    const std::optional<sdpa::KvStorage> before = StorageOf(without);
    const std::optional<sdpa::KvStorage> after = StorageOf(with);
    if (before && after && *before != *after) {
      AddOnce(Code(verdict.toggle), &storing);
      queries = queries || before->queries || after->queries;
    }
  }
  Append(
      &out,
      "What toggles cost, or save, in accuracy, against the FP64 reference. Mean errors are "
      "those of the elements of O, without the toggle → with it, by kind of inputs "
      "(`kernels/sdpa/inputs.h`); bold is a ratio that makes a row stand here, as a failed check "
      "does. Of the other toggles of this page every check passed, and with none does the mean "
      "error",
      bound,
      ". Before the last column stands the largest share that an error takes of its limit in "
      "the rule of correctness (`ablations/correctness.h`), over all inputs with the toggle: "
      "above 100% the results are wrong. ∞ is any error where the limit is 0, as where O is "
      "exactly V, and one that is no number.\n\n",
      table.ToMarkdown());
  if (!storing.empty()) {
    Append(&out, "\n", JoinWords(storing), storing.size() == 1 ? " changes" : " change", " what ",
           queries ? "Q, " : "",
           "K and V are stored as, and each arm is held against the reference of the numbers that "
           "it reads. So these are errors of the arithmetic. The rounding of O counts among them: "
           "where softmax leaves a single key, O of fp16 K and V is a number of fp16 as it is, and "
           "O of 8-bit ones is not. What storing K and V in 8 bits itself costs is in "
           "`reports/cpu/dtypes.md`.\n");
  }
  if (!reasons.empty()) {
    out += "\nBroken without an error over its limit:\n\n";
    for (const std::string& reason : reasons) out += reason;
  }
  return out;
}

}  // namespace warpledger::report
