// SPDX-License-Identifier: Apache-2.0
// `warpledger gate`: whether a record is slower than a baseline, without a GPU.

#include "ablations/judge/compare/gate.h"

#include <cstdio>

#include "ablations/cli/flags.h"
#include "ablations/plan/known_subjects.h"
#include "absl/strings/str_format.h"
#include "kernels/common/status_macros.h"
#include "reports/compared/compared.h"

namespace warpledger::cli {
namespace {

using ablations::JudgedRecord;
using summary::GateResult;

struct GateFlags : FlagSet {
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<std::string> baseline{this, "baseline", "", kBaselineHelp};
  Flag<double> tolerance{this, "tolerance", summary::GateOptions{}.tolerance,
                         "largest allowed slow-down, as a fraction"};
  Flag<bool> allow_other_gpu{
      this, "allow_other_gpu", false,
      "compare records of different GPUs; differences of the GPUs then count as differences of the "
      "kernels"};
  Flag<std::string> junit{this, "junit", "",
                          "also write JUnit XML here, one test case per variant and shape"};
  Flag<std::string> markdown{this, "markdown", "", "also write a summary for a pull request here"};
  FormatFlag format{this};
};

absl::StatusOr<GateResult> GateRecords(const GateFlags& flags,
                                       const summary::GateOptions& options) {
  RETURN_IF_ERROR(flags.format.WantsJson().status());
  RETURN_IF_ERROR(flags.baseline.Needed(kRecordMissing));
  RETURN_IF_ERROR(flags.record.Needed(kRecordMissing));
  // The gate uses a summary's facts alone; its intervals are its own.
  const ablations::SummarizeOptions facts_only = {.bootstrap_resamples = 100};
  ASSIGN_OR_RETURN(const JudgedRecord baseline,
                   ablations::LoadJudged(*flags.baseline, ablations::SubjectOf, facts_only));
  ASSIGN_OR_RETURN(const JudgedRecord record,
                   ablations::LoadJudged(*flags.record, ablations::SubjectOf, facts_only));
  return ablations::Gate(baseline, record, options);
}

absl::StatusOr<int> Gate(const GateFlags& flags) {
  const summary::GateOptions options = {.tolerance = *flags.tolerance,
                                        .allow_other_gpu = *flags.allow_other_gpu};
  const absl::StatusOr<GateResult> gate = GateRecords(flags, options);
  // A pipeline that reads the files must find why there is no answer.
  const GateResult told =
      gate.ok() ? *gate
                : ablations::RefusedGate(*flags.baseline, *flags.record,
                                         std::string(gate.status().message()), options);
  absl::Status written = WriteIfAsked(flags.junit, report::GateJUnit(told));
  written.Update(WriteIfAsked(flags.markdown, report::GateMarkdown(told)));
  if (!gate.ok()) return gate.status();
  // A regression goes before a file that can't be written.
  if (gate->exit != summary::kGateRegression) RETURN_IF_ERROR(written);
  if (!written.ok()) {
    absl::FPrintF(stderr, "warpledger: %s\n", std::string(written.message()));
  }
  const std::string text = *flags.format.WantsJson() ? ablations::DumpFile(report::GateJson(*gate))
                                                     : report::GateText(*gate);
  std::fputs(text.c_str(), stdout);
  return gate->exit;
}

}  // namespace

Command GateCommand() {
  return Runs(
      &Gate,
      {.name = "gate",
       .arguments = "--record=DIR --baseline=DIR [flags]",
       .summary = "Fails when a record is slower than a baseline by more than a tolerance",
       .details =
           "Exit codes: 0 every cell is shown to be within the tolerance; 1 at least one cell "
           "is shown to be slower;\n2 undecided (intervals too wide, or too few processes); "
           "3 cells are missing or wrong, the GPU is another\none, or the gate could not "
           "run. If several apply, 1 goes before 3, and 3 before 2.",
       .exit_on_failure = summary::kGateNotCompared});
}

}  // namespace warpledger::cli
