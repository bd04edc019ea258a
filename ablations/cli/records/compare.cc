// SPDX-License-Identifier: Apache-2.0
// `warpledger compare`: two records against each other, without a GPU.

#include "ablations/judge/compare/compare.h"

#include <cstdio>

#include "ablations/cli/flags.h"
#include "ablations/plan/known_subjects.h"
#include "kernels/common/status_macros.h"
#include "reports/compared/compared.h"

namespace warpledger::cli {
namespace {

struct CompareFlags : FlagSet {
  Flag<std::string> a{this, "a", "", "the first record's directory: the base of every ratio"};
  Flag<std::string> b{this, "b", "", "the second record's directory"};
  FormatFlag format{this};
  Flag<std::string> out{this, "out", "", kOutHelp};
};

absl::StatusOr<int> Compare(const CompareFlags& flags) {
  ASSIGN_OR_RETURN(const bool json, flags.format.WantsJson());
  RETURN_IF_ERROR(flags.a.Needed(kRecordMissing));
  RETURN_IF_ERROR(flags.b.Needed(kRecordMissing));
  ASSIGN_OR_RETURN(const ablations::JudgedRecord a,
                   ablations::LoadJudged(*flags.a, ablations::SubjectOf, {}));
  ASSIGN_OR_RETURN(const ablations::JudgedRecord b,
                   ablations::LoadJudged(*flags.b, ablations::SubjectOf, {}));
  const summary::Comparison comparison = ablations::Compare(a, b);
  RETURN_IF_ERROR(WriteIfAsked(flags.out, report::ComparisonMarkdown(comparison)));
  const std::string text = json ? ablations::DumpFile(ablations::ToJson(comparison))
                                : report::ComparisonText(comparison);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace

Command CompareCommand() {
  return Runs(
      &Compare,
      {.name = "compare",
       .arguments = "--a=DIR --b=DIR [--format=json] [--out=FILE.md]",
       .summary = "Compares two records: times, resources, verdicts",
       .details = "Samples of two records are never paired, so intervals are wider than inside one "
                  "record.\n--out also writes the comparison as Markdown."});
}

}  // namespace warpledger::cli
