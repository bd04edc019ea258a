// SPDX-License-Identifier: Apache-2.0
// The lines of a record's files: which of them make sense after those before.
//
// Errors: DataLoss that names file and line ("samples.jsonl:17: …").

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

bool IsPeer(const std::string& arm);
BlockKey KeyOf(const Sample& sample);
// "process 0, shape 'small', block 3".
std::string NameOf(const BlockKey& key);

// What run.json names. InvalidArgument where a name stands twice or a base is missing.
struct Names {
  std::set<std::string> arms;
  std::set<std::string> shapes;
  std::string cache;
  int processes = 0;
  int blocks = 0;      // of each process
  bool alone = false;  // a sample is a visit
};
absl::StatusOr<Names> NamesOf(const RunInfo& run);

// Why a sample is none of this run; empty when it is.
std::string WhyUnknown(const Names& names, const Sample& sample);
// Why `sample` can't follow `block`, the samples of its block before it; empty
// when it can.
std::string WhyNotNext(const std::vector<Sample>& block, const Sample& sample);

// What to make of an end that a kill cut off: damage, or what is dropped.
enum class Tail { kStrict, kRepair };

// A line as a writer appends it, its newline included: behind its last field stands
// `"sum":"…"`, the first eight digits of the SHA-256 of the line up to the comma before it.
std::string SummedLine(const nlohmann::ordered_json& json);

inline constexpr std::string_view kBeforeSum = ",\"sum\":\"";
inline constexpr std::string_view kAfterSum = "\"}";
// The digits of the sum of a line up to the comma before it.
std::string SumOf(std::string_view body);
// A line up to that comma, whether or not its sum is right; empty where it has none.
std::string_view BodyOfSummed(std::string_view line);

// Calls `visit(line, number)` on each whole line of `file`'s text; returns the bytes that they
// cover. DataLoss at its line are what `visit` refuses, a sum that the line has not, and a line
// without a sum behind one that has it: older records have none.
using VisitLine = std::function<absl::Status(std::string_view, int64_t)>;
absl::StatusOr<size_t> ForEachLine(const std::string& text, const std::string& file, Tail tail,
                                   const VisitLine& visit);

// The whole lines of a JSONL file up to `good_bytes`.
struct SampleLines {
  std::vector<Sample> samples;
  std::set<BlockKey> completed;
  size_t good_bytes = 0;
  int64_t dropped_lines = 0;
};
absl::StatusOr<SampleLines> ParseSamples(const std::string& text, const Names& names, Tail tail);

// Lines that name an arm and a shape of the run: correctness.jsonl, broken.jsonl, calls.jsonl.
// A check may be of a peer too, and on a shape that is only checked, never timed.
template <typename T>
struct ArmLines {
  std::vector<T> values;
  size_t good_bytes = 0;
};
// `file`: what errors name.
template <typename T>
absl::StatusOr<ArmLines<T>> ParseArmLines(const std::string& text, const char* file,
                                          const Names& names, Tail tail);
extern template absl::StatusOr<ArmLines<Check>> ParseArmLines(const std::string&, const char*,
                                                              const Names&, Tail);
extern template absl::StatusOr<ArmLines<BrokenArm>> ParseArmLines(const std::string&, const char*,
                                                                  const Names&, Tail);
extern template absl::StatusOr<ArmLines<LaunchedCall>> ParseArmLines(const std::string&,
                                                                     const char*, const Names&,
                                                                     Tail);

}  // namespace warpledger::ablations
