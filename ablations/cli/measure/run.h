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
      "the design to measure; a study's default is one_on. factorial:A,B[@C,D]: every combination "
      "of the toggles A and B, with C and D always on; fractional:A,B,C,D[@E]: a fraction of the "
      "combinations; sweep:A[@B]: the levels of A"};
  ProblemFlags problems{this};
  Flag<std::string> out{this, "out", "", kOutHelp};
  SamplingFlags sampling{this};
  Flag<std::string> peers{
      this, "peers", "auto",
      "auto times PyTorch's SDPA backends too, where PyTorch is found; off times none; or a list "
      "of flash,cudnn,efficient,math,fa3,fa4,flex,triton,cudnn_fp8, of which auto takes the first "
      "four"};
  PythonFlag python{this};
  Flag<bool> dry_run{this, "dry_run", false, kDryRunHelp};
  Flag<std::string> record{this, "record", "", kRecordHelp};
  Flag<int> arm_limit_s{this, "arm_limit_s", 60,
                        "an arm that does not answer for this many seconds is BROKEN, and the run "
                        "goes on without it"};
  Flag<std::string> cache{
      this, "cache", "warm",
      "warm: launches rotate over 4 input sets, which stay in the L2 where it can hold them; cold: "
      "over so many that the L2 has forgotten them"};
  Flag<bool> alone{
      this, "alone", false,
      "time each arm and each peer by itself, without a pause, in rounds that change direction: "
      "time and joules at the clock that its own power allows (reports/decisions/0045); --blocks "
      "is then the number of rounds per process (default 1), and --processes is 4 by default"};
  Flag<double> settle_s{this, "settle_s", 0.5,
                        "with --alone: seconds that a visit runs before it is timed"};
  Flag<double> window_s{this, "window_s", 1, "with --alone: least seconds that a visit is timed"};
  Flag<std::string> stop{
      this, "stop", "off",
      "off, or ci:1%: finish a shape early, at a planned interim analysis, once every interval is "
      "within 1% of its ratio; in return intervals are wider (reports/decisions/0012)"};
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
                  "makes the checks of a run without\nmeasuring; with --record it estimates the "
                  "duration from the times of an earlier record."});
}

absl::StatusOr<int> Work(const FlagSet& flags);

inline Command WorkerCommand() {
  return Runs(&Work, {.name = "worker",
                      .arguments = "",
                      .summary = "Measures for `run`, which starts it",
                      .hidden = true});
}

}  // namespace warpledger::cli
