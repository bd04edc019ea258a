// SPDX-License-Identifier: Apache-2.0
// `warpledger run`, and the worker that it starts.

#pragma once

#include <string>

#include "ablations/cli/flags.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct RunFlags : FlagSet {
  Flag<std::string> subject{this, "subject", "sdpa", kSubjectHelp};
  Flag<std::string> study{this, "study", "", kStudyHelp};
  Flag<std::string> callables{
      this, "callables", "",
      "a definition of Python callables, in place of --subject: what the package warpledger "
      "writes"};
  Flag<std::string> design{
      this, "design", "ladder",
      "the design to measure, of a study one_on unless it is named; also factorial:A,B[@C,D]: "
      "every combination of the toggles A and "
      "B, with C and D always on; fractional:A,B,C,D[@E]: a fraction of that; sweep:A[@B]: its "
      "levels"};
  ProblemFlags problems{this};
  Flag<std::string> out{this, "out", "", kOutHelp};
  SamplingFlags sampling{this};
  Flag<std::string> peers{
      this, "peers", "auto",
      "auto: time PyTorch's SDPA backends too where PyTorch is found; or which of "
      "flash,cudnn,efficient,math,fa3, of which auto leaves the last out; off: none"};
  PythonFlag python{this};
  Flag<bool> dry_run{this, "dry_run", false, kDryRunHelp};
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<int> arm_limit_s{
      this, "arm_limit_s", 60,
      "an arm that gives no answer for so many seconds is BROKEN, and the run goes on without"};
  Flag<std::string> cache{
      this, "cache", "warm",
      "warm: inputs stay in the L2 from launch to launch; cold: launches rotate over so many "
      "input sets that the L2 has forgotten them"};
  Flag<bool> alone{
      this, "alone", false,
      "each arm and each peer by itself, without a pause, in rounds that change direction: what it "
      "takes in time and joules at the clock that its own power allows (reports/decisions/0045); "
      "--blocks is the rounds of a process, 1 unless it is named, --processes 4"};
  Flag<double> settle_s{this, "settle_s", 0.5,
                        "with --alone: for so long a visit runs before it is timed"};
  Flag<double> window_s{this, "window_s", 1, "with --alone: for so long it is timed, at least"};
  Flag<std::string> stop{
      this, "stop", "off",
      "off, or ci:1%: end on a shape at one of a few planned looks once every interval there is "
      "within 1% of its ratio; verdicts pay for the looks (reports/decisions/0012)"};
  Flag<std::string> plant{
      this, "plant", "",
      "for tests of the harness: FAULT@ARM[@SHAPE],…, with the faults trap, spin, write_outside, "
      "write_unmapped; the record says so"};
};

absl::StatusOr<int> Run(const RunFlags& flags);

inline Command RunCommand() {
  return Runs(
      &Run,
      {.name = "run",
       .arguments = "--out=DIR [flags]",
       .summary = "Measures a design on shapes and writes a record (needs a GPU)",
       .details = "The same call on the same directory resumes a run that was stopped. --dry_run "
                  "refuses what a run would refuse,\nand takes the times of an earlier record, "
                  "--record, for its estimate."});
}

absl::StatusOr<int> Work(const FlagSet& flags);

inline Command WorkerCommand() {
  return Runs(&Work, {.name = "worker",
                      .arguments = "",
                      .summary = "Measures for `run`, which starts it",
                      .hidden = true});
}

}  // namespace warpledger::cli
