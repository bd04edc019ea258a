// The process that owns the GPU: checks and times the arms of a design.
//
// It reads a job from its standard input and prints one JSON object per line:
//   {"check": …}           one line of correctness.jsonl
//   {"block": [sample, …]} the samples of one block, for samples.jsonl
// The controller (run.h) starts several, one after another, and writes what they
// print: a worker that crashes loses at most the block in flight.

#ifndef WARPLEDGER_ABLATIONS_WORKER_H_
#define WARPLEDGER_ABLATIONS_WORKER_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr char kFloorArm[] = "floor:empty_kernel";

// Input sets that the launches of a replay rotate over.
inline constexpr int kInputSets = 4;

struct WorkerJob {
  std::string design;
  std::vector<std::string> shapes;
  int process = 0;
  uint64_t seed = 0;
  int blocks = 0;
  double replay_us = 0;
  int max_launches = 0;
  std::set<std::pair<std::string, int>> done;  // (shape, block) that the record has

  std::string ToJson() const;
  static absl::StatusOr<WorkerJob> FromJson(std::string_view text);
};

// Does the job, printing lines to standard output. Needs a GPU.
absl::Status RunWorker(const WorkerJob& job);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_WORKER_H_
