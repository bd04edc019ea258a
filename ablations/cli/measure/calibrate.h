// SPDX-License-Identifier: Apache-2.0
// `warpledger calibrate`.

#pragma once

#include <string>

#include "ablations/cli/flags.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct CalibrateFlags : FlagSet {
  Flag<std::string> subject{this, "subject", "sdpa", kSubjectHelp};
  Flag<std::string> variant{this, "variant", "", kVariantHelp};
  Flag<std::string> shape{this, "shape", "b1_h8_s512_d64", "the one shape to calibrate on"};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<int> aa_pairs{this, "aa_pairs", 30, "pairs of identical arms in each block"};
  Flag<int> aa_family{
      this, "aa_family", 2,
      "pairs of identical arms that are judged as one family; 2 as a run's controls are"};
  Flag<std::string> plants{this, "plants", "0.5%x4,1%x4,2%x10,5%x3",
                           "planted slow-downs, each with the number of its arms in a block"};
  Flag<int> groups{this, "groups", 10,
                   "groups of processes; each group gives one trial of every pair"};
  SamplingFlags sampling{this};
};

absl::StatusOr<int> Calibrate(const CalibrateFlags& flags);

inline Command CalibrateCommand() {
  return Runs(
      &Calibrate,
      {.name = "calibrate",
       .arguments = "--out=DIR [flags]",
       .summary = "Measures the ledger's own false alarms and its power (needs a GPU)",
       .details = "Times pairs of one kernel whose truth is known, identical or slowed by a known "
                  "delay, as `run` does.\nThe same call on the same directory resumes; `judge` and "
                  "`report` read the record."});
}

}  // namespace warpledger::cli
