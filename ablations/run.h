// `warpledger run`: measures a design on shapes and writes a record.
//
// Describes the GPU, the build and the design; controller.h does the rest.

#ifndef WARPLEDGER_ABLATIONS_RUN_H_
#define WARPLEDGER_ABLATIONS_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablations/record.h"
#include "absl/status/status.h"
#include "kernels/sdpa/shapes.h"

namespace warpledger::ablations {

struct RunOptions {
  std::string design = "ladder";
  std::vector<sdpa::NamedShape> shapes;
  std::string out_dir;
  int processes = 5;
  int blocks = 24;  // per process and shape
  uint64_t seed = 1;
  double replay_us = 1000;
  int max_launches = 256;
  std::vector<std::string> peers;  // of kPeers; empty: none is timed
  std::string python = "python3";  // for the peers
  int silence_limit_s = 300;       // a process that says nothing for longer is stopped
  int arm_limit_s = 60;            // an arm that gives no answer for longer is broken
  std::string cache = kCacheWarm;
  std::optional<StoppingRule> stopping;
  std::vector<PlantedFault> planted;
  std::vector<std::string> argv;  // as called, for run.json
};

absl::Status RunDesign(const RunOptions& options);

}  // namespace warpledger::ablations

#endif  // WARPLEDGER_ABLATIONS_RUN_H_
