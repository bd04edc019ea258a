// SPDX-License-Identifier: Apache-2.0
// The small whole records that the fuzzer damages: committed records, cut down to a
// few arms on one shape, two processes of two blocks, and to what they say of these
// arms, so that one execution takes a few milliseconds even under the sanitizers.
//
//   std::vector<Seed> seeds = MakeSeeds("reports/data", "/dev/shm/x");
//
// Each is accepted by what reads it: a seed that is refused at the door would leave
// everything behind it untested, so MakeSeeds ends the program with the reason.

#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/judge/compare/compare.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/calibration.h"

namespace warpledger::fuzz {

using Files = std::map<std::string, std::string>;

enum class SeedKind {
  kRun,          // by `warpledger run`: the newest of each design
  kCalibration,  // by `warpledger calibrate`
  kProfile,      // by `warpledger profile`, and what ncu prints
  kMicro,        // by `warpledger micro`: what summaries quote of it
  kFormats,      // worker jobs, waivers, NumPy files, and what flags take
  kPack,         // by `warpledger pack`
  kDtypes,       // by `warpledger dtypes`
  kStudy,        // a user's study.toml
};

struct Seed {
  SeedKind kind = SeedKind::kRun;
  std::string name;  // the design, or the kind
  std::string dir;   // holds the undamaged files
  Files files;
  std::set<std::string> others;         // names in the folder of what is never damaged
  ablations::JudgedRecord judged;       // of a run
  bool summed = false;                  // its samples carry the sums of their lines
  ablations::CalibrationHeader header;  // of a calibration
};

// Names of the files that no record has.
inline constexpr char kNcuFile[] = "ncu.csv";
inline constexpr char kJobFile[] = "job.json";
inline constexpr char kWaiversFile[] = "waivers.txt";
inline constexpr char kNpyFile[] = "array.npy";
inline constexpr char kFlagsFile[] = "flags.txt";  // a flag's value on each line
inline constexpr char kStudyFile[] = "study.toml";
inline constexpr char kPackFile[] = "mine.tar.zst";
inline constexpr char kTarFile[] = "mine.tar";

// In place of a file's bytes: a thing of another kind stands there, or nothing.
inline constexpr std::string_view kKinds[] = {"kind:pipe",   "kind:folder", "kind:device",
                                              "kind:circle", "kind:sparse", "kind:gone"};
inline bool IsKind(std::string_view text) {
  return std::find(std::begin(kKinds), std::end(kKinds), text) != std::end(kKinds);
}

// The fewest resamples there may be: whether intervals are right is for other tests.
inline const ablations::SummarizeOptions kQuick = {.bootstrap_resamples = 100};

// `scratch` is an empty folder, where each seed gets one of its own.
std::vector<Seed> MakeSeeds(const std::string& data, const std::string& scratch);

// The archive compressed as a pack's is, whatever it holds.
std::string PackOfTar(std::string_view tar);

// Ends the program with exit code 2 when it can't.
void WriteFileOrDie(const std::string& dir, const std::string& name, std::string_view text);
[[noreturn]] void Die(std::string_view why);

}  // namespace warpledger::fuzz
