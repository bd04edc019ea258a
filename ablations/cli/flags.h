// SPDX-License-Identifier: Apache-2.0
// Flags that several commands take.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ablations/base/files.h"
#include "ablations/cli/command.h"
#include "ablations/record/record_files.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/common/status_macros.h"

namespace warpledger::cli {

inline constexpr char kOutHelp[] = "where the output goes";
inline constexpr char kRecordHelp[] = "the record: its directory or its pack";
inline constexpr char kSeedHelp[] = "seed of inputs and orders";
inline constexpr char kSubjectHelp[] =
    "the subject to measure: sdpa, attention on a GPU; or stand_in, which needs no GPU and draws "
    "times from a known model";
inline constexpr char kStudyHelp[] =
    "a study's folder, in place of --subject: your own kernels (`warpledger help study`)";
inline constexpr char kVariantHelp[] =
    "a variant: an arm of a design (ladder:wmma_pv) or toggles joined by + "
    "(kv_tiling+warp_shuffle)";
inline constexpr char kVariantsHelp[] = "variants, comma-separated, or all";
inline constexpr char kShapesHelp[] =
    "shapes, comma-separated; 'ladder' for the design's own, 'all' for every one; or any sizes, as "
    "in b2_h8_s256_d64 and b1_h32x8_s1x8192_d128_causal_bf16 (Q's x K/V's)";
inline constexpr char kProblemHelp[] =
    "in place of --shapes: a problem by its parameters, as B=1,H=16,S=3000,D=128,causal (also "
    "H=32x8, S=1x8192, bf16) of attention, rows=4096,cols=8192 of a study";
inline constexpr char kPlotsHelp[] = "draw the figures too";
inline constexpr char kBaselineHelp[] =
    "the baseline to compare with: a record's directory; for ratchet also a resources.json";
inline constexpr char kSilenceLimitHelp[] =
    "stop a worker process that prints nothing for this many seconds";
inline constexpr char kDryRunHelp[] =
    "only say how many samples the run takes, about how long, and what the record has already; for "
    "check: how many checks there are";

inline constexpr double kMostReplayUs = 6e7;

// Of a command that takes problems.
struct ProblemFlags {
  FlagSet* set;
  Flag<std::string> shapes{set, "shapes", "ladder", kShapesHelp};
  Flag<std::string> problem{set, "problem", "", kProblemHelp};

  // As Subject::ParseProblems() takes them, where commas part problems.
  absl::StatusOr<std::string> List() const {
    if (!problem.given) return *shapes;
    if (!shapes.given) return absl::StrReplaceAll(*problem, {{",", ":"}});
    return absl::InvalidArgumentError("--problem takes the place of --shapes: name one of them");
  }
};

// Of a command that takes samples.
struct SamplingFlags {
  FlagSet* set;
  Flag<int> processes{
      set, "processes", 5,
      "worker processes, one after another; with 5 the intervals of verdicts are about a third as "
      "wide as with 3 (reports/decisions/0002)"};
  Flag<int> blocks{set, "blocks", 24, "blocks per process and shape; a block times every arm once"};
  Flag<uint64_t> seed{set, "seed", 1, kSeedHelp};
  Flag<double> replay_us{set, "replay_us", 1000,
                         "wanted length of one graph replay, in microseconds"};
  Flag<int> max_launches{set, "max_launches", 256, "most launches in one graph replay"};
  Flag<int> silence_limit_s{set, "silence_limit_s", 300, kSilenceLimitHelp};
};

// Of a command that starts Python.
struct PythonFlag {
  FlagSet* set;
  Flag<std::string> flag{
      set, "python", "",
      "Python interpreter for peers and plots; default: $WARPLEDGER_PYTHON, else python3"};

  std::string Interpreter() const {
    if (flag.given) return *flag;
    const char* variable = std::getenv("WARPLEDGER_PYTHON");
    return variable != nullptr && *variable != '\0' ? variable : "python3";
  }
};

// Of a command that prints for people or for scripts.
struct FormatFlag {
  FlagSet* set;
  Flag<std::string> flag{set, "format", "text", "text or json"};

  absl::StatusOr<bool> WantsJson() const {
    if (*flag == "text" || *flag == "json") return *flag == "json";
    return absl::InvalidArgumentError(absl::StrCat("--format=", *flag, ": it is text or json"));
  }
};

inline constexpr char kRecordMissing[] = "DIR is missing: a directory that `warpledger run` wrote";
inline constexpr char kRecordOrPackMissing[] =
    "DIR is missing: the directory that `warpledger run` wrote, or a pack of one";

// Writes an output. A file of a record is never replaced by one.
inline absl::Status WriteOutput(const std::string& file, const std::string& text) {
  RETURN_IF_ERROR(ablations::RefuseRawFile(file));
  return ablations::WriteFileAtomically(file, text);
}
// To the file that the flag names, where it is given.
inline absl::Status WriteIfAsked(const Flag<std::string>& file, const std::string& text) {
  return file.given ? WriteOutput(*file, text) : absl::OkStatus();
}

// The names in a flag's value: none is empty.
inline absl::StatusOr<std::vector<std::string>> NamesIn(const Flag<std::string>& flag) {
  std::vector<std::string> names = absl::StrSplit(*flag, ',');
  if (!absl::c_linear_search(names, "")) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag.name, "=", *flag, ": a name between the commas is missing"));
}

}  // namespace warpledger::cli
