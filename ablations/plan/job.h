// SPDX-License-Identifier: Apache-2.0
// The job of one worker process: what it is to measure, and on how much data.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr char kFloorArm[] = "floor:empty_kernel";
inline constexpr char kReadArm[] = "floor:read_kv";  // of designs whose arms memory bounds
inline bool IsFloor(std::string_view arm) { return arm.starts_with("floor:"); }

// Input sets with data of their own, which the launches of a replay rotate over.
inline constexpr int kInputSets = 4;

// How many times the L2's size a rotation touches before it comes back to the
// same addresses, when the L2 is to be cold. On an H200, reads of mission_b's size
// (cold_rotation_gpu_test) take 1.26 us up to 0.25 times the L2, 1.29 us at 0.5, and
// 2.06 us from 1 to 10 times: 2 leaves room for other replacement policies.
inline constexpr double kColdL2Multiple = 2;
// More sets than this are refused: a shape so small can't be made cold this way.
inline constexpr int kMaxRotation = 2048;

// The input sets that a replay rotates over: kInputSets where the L2 is warm. Cold,
// as many as touch kColdL2Multiple times the L2, in multiples of kInputSets; the
// further ones are copies at other addresses. Rotating leaves the protocol, and
// so the meaning of a time, as it is when warm. A flush between launches would
// have to stay outside the timed window: each launch would need events of its own,
// whose cost and resolution are of the size of our shortest kernels, and a flush
// by writes leaves dirty lines whose write-back the kernel then pays for.
// InvalidArgument where that takes more than kMaxRotation sets.
// `bytes`: what one launch touches at least.
absl::StatusOr<int> RotationSets(double bytes, std::string_view cache, int64_t l2_bytes);

// InvalidArgument that names the problem, where RotationSets() refuses it.
absl::Status CheckRotation(const ShapeInfo& problem, std::string_view cache, int64_t l2_bytes);

// A line of JSON on the worker's standard input.
struct WorkerJob {
  std::string subject = kFirstSubject;
  SubjectDefinition definition;
  std::string design;
  std::vector<std::string> shapes;
  int process = 0;
  uint64_t seed = 0;
  int blocks = 0;
  double replay_us = 0;
  int max_launches = 0;
  std::string cache;                           // kCacheWarm or kCacheCold
  std::set<std::pair<std::string, int>> done;  // (shape, block) that the record has
  std::optional<AlonePlan> alone;              // else arms take turns
  // Of a run of visits: ((arm, shape), block) that the record has.
  std::set<std::pair<std::pair<std::string, std::string>, int>> visited;
  std::set<std::pair<std::string, std::string>> excluded;  // (arm, shape) not to be run
  std::vector<PlantedFault> planted;

  template <typename F>
  void Visit(F& f) {
    FIELDS(subject);
    f("definition", definition, kOnlyWhereSet);
    FIELDS(design, shapes);
    f("process", process, AtLeast{0});
    f("seed", seed);
    f("blocks", blocks, Within{1, kMostBlocks});
    FIELDS(replay_us, max_launches, cache, done);
    f("alone", alone, kOnlyWhereSet);
    f("visited", visited, kOnlyWhereSet);
    FIELDS(excluded, planted);
  }
  friend bool operator==(const WorkerJob&, const WorkerJob&) = default;
};

}  // namespace warpledger::ablations
