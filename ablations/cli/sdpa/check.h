// SPDX-License-Identifier: Apache-2.0
// `warpledger check`: variants of SDPA against the FP64 reference. Check() is in check.cc, or in
// no_cuda.cc in a build without kernels.

#pragma once

#include <cstdint>
#include <string>

#include "ablations/cli/flags.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct CheckFlags : FlagSet {
  Flag<std::string> variants{this, "variants", "all", kVariantsHelp};
  ProblemFlags problems{this};
  Flag<std::string> inputs{
      this, "inputs", "all",
      "input distributions, comma-separated: normal, outliers, large_logits, constant; or all"};
  Flag<int> seeds{this, "seeds", 3, "seeds per shape and input distribution"};
  Flag<uint64_t> seed{this, "seed", 1, kSeedHelp};
  Flag<std::string> shard{
      this, "shard", "1/1",
      "K/N: only the K-th of N parts of the pairs of a variant and a shape, for N processes"};
  Flag<std::string> known{
      this, "known", "",
      "a file of SHA-256 hashes, one a line: machine code that is left out of the checks"};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<bool> dry_run{this, "dry_run", false, kDryRunHelp};
};

absl::StatusOr<int> Check(const CheckFlags& flags);

inline Command CheckCommand() {
  return Runs(
      &Check,
      {.name = "check",
       .arguments = "[flags]",
       .summary = "Checks variants against the FP64 reference on shapes (needs a GPU)",
       .details =
           "Outputs are poisoned with NaN and lie between guard bands; every run is repeated "
           "and must give the same bits. --out appends a line of JSON for each check, with the "
           "hash of its\nmachine code; what --known lists of those is left out. --dry_run says "
           "how many checks it would be."});
}

}  // namespace warpledger::cli
