// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record_lines.h"

#include <type_traits>
#include <utility>

#include "ablations/record/record_files.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

absl::Status Damaged(const std::string& file, int64_t line, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(file, ":", line, ": ", what));
}

constexpr char kRepairHint[] =
    "; `warpledger run` on the same directory cuts it off and goes on from there";

constexpr size_t kSumDigits = 8;
constexpr size_t kSumBytes = kBeforeSum.size() + kSumDigits + kAfterSum.size();

}  // namespace

std::string SumOf(std::string_view body) { return Sha256(body).substr(0, kSumDigits); }

std::string_view BodyOfSummed(std::string_view line) {
  const bool has_sum = line.size() > kSumBytes &&
                       line.substr(line.size() - kSumBytes).starts_with(kBeforeSum) &&
                       line.ends_with(kAfterSum);
  return line.substr(0, has_sum ? line.size() - kSumBytes : 0);
}

std::string SummedLine(const nlohmann::ordered_json& json) {
  std::string line = DumpLine(json);
  line.pop_back();  // the brace behind the last field
  const std::string sum = SumOf(line);
  return absl::StrCat(line, absl::string_view(kBeforeSum.data(), kBeforeSum.size()), sum, "\"}\n");
}

absl::StatusOr<size_t> ForEachLine(const std::string& text, const std::string& file, Tail tail,
                                   const VisitLine& visit) {
  size_t begin = 0;
  bool summed = false;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      if (tail == Tail::kRepair) break;
      return Damaged(file, number,
                     absl::StrCat("the last line is cut off, it has no newline", kRepairHint));
    }
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::string_view body = BodyOfSummed(line);
    if (!body.empty()) {
      summed = true;
      const std::string_view sum = line.substr(body.size() + kBeforeSum.size(), kSumDigits);
      if (sum != SumOf(body)) {
        return Damaged(file, number, "the line is not what was written: its sum is another");
      }
    } else if (summed) {
      return Damaged(file, number, "the line has no sum, and those before it have one");
    }
    const absl::Status status = visit(line, number);
    if (!status.ok()) return Damaged(file, number, status.message());
    begin = end + 1;
  }
  return begin;
}

bool IsPeer(const std::string& arm) { return absl::StartsWith(arm, kPeerPrefix); }

BlockKey KeyOf(const Sample& sample) {
  return {sample.process, sample.shape, sample.block, IsPeer(sample.arm),
          sample.IsVisit() ? sample.arm : ""};
}

std::string NameOf(const BlockKey& key) {
  return absl::StrCat("process ", key.process, ", shape '", key.shape, "', block ", key.block,
                      !key.arm.empty() ? absl::StrCat(" of '", key.arm, "'")
                      : key.peers      ? " of the peers"
                                       : "");
}

std::string WhyNotNext(const std::vector<Sample>& block, const Sample& sample) {
  const BlockKey key = KeyOf(sample);
  if (sample.order < 0 || sample.order >= sample.of) {
    return absl::StrCat("order ", sample.order, " of ", sample.of, " in ", NameOf(key));
  }
  for (const Sample& other : block) {
    if (KeyOf(other) != key) {
      return absl::StrCat(NameOf(KeyOf(other)), " has ", block.size(), " of its ", other.of,
                          " samples when ", NameOf(key), " begins");
    }
    if (other.of != sample.of) {
      return absl::StrCat(NameOf(key), " has ", other.of, " samples on one line and ", sample.of,
                          " on another");
    }
    if (other.order == sample.order) {
      return absl::StrCat(NameOf(key), " has two samples at order ", sample.order);
    }
    if (other.arm == sample.arm) {
      return absl::StrCat(NameOf(key), " times arm '", sample.arm, "' twice");
    }
  }
  return "";
}

// Peers need not be arms: which of them exist shows only when they run.
std::string WhyUnknown(const Names& names, const Sample& sample) {
  if (!IsPeer(sample.arm) && !names.arms.contains(sample.arm)) {
    return absl::StrCat("arm '", sample.arm, "' is not in ", kRunFile);
  }
  if (!names.shapes.contains(sample.shape)) {
    return absl::StrCat("shape '", sample.shape, "' is not in ", kRunFile);
  }
  if (sample.cache != names.cache) {
    return absl::StrCat("cache mode '", sample.cache, "', but ", kRunFile, " says '", names.cache,
                        "'");
  }
  if (sample.IsVisit() != names.alone || (names.alone && sample.of != 1)) {
    return absl::StrCat(NameOf(KeyOf(sample)), " is ", sample.IsVisit() ? "a" : "no",
                        " visit of one arm, but ", kRunFile, " plans ",
                        names.alone ? "each arm alone" : "arms in turn");
  }
  if (sample.process >= names.processes || sample.block >= names.blocks) {
    return absl::StrCat(NameOf(KeyOf(sample)), ", but ", kRunFile, " plans ", names.processes,
                        " processes of ", names.blocks, " blocks");
  }
  return "";
}

absl::StatusOr<Names> NamesOf(const RunInfo& run) {
  Names names;
  names.cache = run.cache;
  names.alone = run.alone.has_value();
  names.processes = run.processes;
  names.blocks = run.blocks_per_process;
  for (const ShapeInfo& shape : run.shapes) {
    if (!names.shapes.insert(shape.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("shapes: '", shape.name, "' stands twice"));
    }
  }
  for (const Arm& arm : run.arms) {
    if (!names.arms.insert(arm.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("arms: '", arm.name, "' stands twice"));
    }
  }
  for (const Arm& arm : run.arms) {
    const bool judged = arm.role == kRoleStep || arm.role == kRoleWithout || arm.role == kRoleAa ||
                        arm.role == kRoleNull;
    if ((judged || !arm.base.empty()) && !names.arms.contains(arm.base)) {
      return absl::InvalidArgumentError(absl::StrCat("arms: '", arm.name, "' is judged against '",
                                                     arm.base, "', which is no arm of this run"));
    }
  }
  return names;
}

absl::StatusOr<SampleLines> ParseSamples(const std::string& text, const Names& names, Tail tail) {
  SampleLines result;
  std::vector<Sample> block;
  size_t bytes = 0;
  int64_t last_line = 0;
  const auto visit = [&](std::string_view line, int64_t number) -> absl::Status {
    ASSIGN_OR_RETURN(Sample sample, FromText<Sample>(line));
    std::string why = WhyUnknown(names, sample);
    if (why.empty()) why = WhyNotNext(block, sample);
    // The sequence has no gaps, so a deleted block shows.
    const int64_t seq = static_cast<int64_t>(result.samples.size() + block.size());
    if (why.empty() && sample.seq != seq) {
      why = absl::StrCat("seq is ", sample.seq, ", expected ", seq,
                         ": lines were deleted, doubled or reordered");
    }
    if (why.empty() && block.empty() && result.completed.contains(KeyOf(sample))) {
      why = absl::StrCat(NameOf(KeyOf(sample)), " stands twice");
    }
    if (!why.empty()) return absl::DataLossError(why);
    block.push_back(std::move(sample));
    bytes += line.size() + 1;
    last_line = number;
    if (static_cast<int>(block.size()) == block.front().of) {
      result.completed.insert(KeyOf(block.front()));
      std::move(block.begin(), block.end(), std::back_inserter(result.samples));
      block.clear();
      result.good_bytes = bytes;
    }
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const size_t whole, ForEachLine(text, kSamplesFile, tail, visit));
  if (!block.empty() && tail == Tail::kStrict) {
    return Damaged(
        kSamplesFile, last_line,
        absl::StrCat("the last block (", NameOf(KeyOf(block.front())), ") has ", block.size(),
                     " of its ", block.front().of, " samples", kRepairHint));
  }
  result.dropped_lines = static_cast<int64_t>(block.size()) + (whole < text.size() ? 1 : 0);
  return result;
}

template <typename T>
absl::StatusOr<ArmLines<T>> ParseArmLines(const std::string& text, const char* file,
                                          const Names& names, Tail tail) {
  constexpr bool kIsCheck = std::is_same_v<T, Check>;
  ArmLines<T> result;
  const auto visit = [&](std::string_view line, int64_t) -> absl::Status {
    ASSIGN_OR_RETURN(T value, FromText<T>(line));
    if (!names.arms.contains(value.arm) && !(kIsCheck && IsPeer(value.arm))) {
      return absl::DataLossError(absl::StrCat("arm '", value.arm, "' is not in ", kRunFile));
    }
    if (!kIsCheck && !names.shapes.contains(value.shape)) {
      return absl::DataLossError(absl::StrCat("shape '", value.shape, "' is not in ", kRunFile));
    }
    result.values.push_back(std::move(value));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(result.good_bytes, ForEachLine(text, file, tail, visit));
  return result;
}

template absl::StatusOr<ArmLines<Check>> ParseArmLines(const std::string&, const char*,
                                                       const Names&, Tail);
template absl::StatusOr<ArmLines<BrokenArm>> ParseArmLines(const std::string&, const char*,
                                                           const Names&, Tail);
template absl::StatusOr<ArmLines<LaunchedCall>> ParseArmLines(const std::string&, const char*,
                                                              const Names&, Tail);

}  // namespace warpledger::ablations
