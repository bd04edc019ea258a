#include "ablations/estimate.h"

#include <algorithm>
#include <string>

namespace warpledger::ablations {
namespace {

// A process that finds the GPU, makes the inputs and captures the graphs, per shape.
constexpr double kStartSeconds = 1;
// The untimed replays before the first block of a shape (worker.cc).
constexpr double kWarmUpSeconds = 0.3;
// ComputeReference() does about so many of the shape's operations per second
// and core; measured on a server's core at the shape `long`.
constexpr double kReferenceFlopsPerCore = 0.7e9;

}  // namespace

std::set<BlockKey> CompletedOurs(const Record& record) {
  std::set<BlockKey> done;
  for (const Sample& sample : record.samples) {
    if (sample.arm.rfind(kPeerPrefix, 0) == 0) continue;
    done.insert(
        {.process = sample.process, .shape = sample.shape, .block = sample.block, .peers = false});
  }
  return done;
}

RunEstimate EstimateRun(const RunPlan& plan, const std::set<BlockKey>& done) {
  RunEstimate estimate;
  estimate.arms = static_cast<int>(plan.design.arms.size()) + 1;
  std::vector<sdpa::Config> configs;
  for (const DesignArm& arm : plan.design.arms) {
    if (std::find(configs.begin(), configs.end(), arm.config) == configs.end()) {
      configs.push_back(arm.config);
    }
  }
  estimate.kernels = static_cast<int>(configs.size());
  for (int process = 0; process < plan.processes; ++process) {
    for (const sdpa::NamedShape& shape : plan.shapes) {
      int left = 0;
      for (int block = 0; block < plan.blocks; ++block) {
        left += done.contains({.process = process,
                               .shape = std::string(shape.name),
                               .block = block,
                               .peers = false})
                    ? 0
                    : 1;
      }
      estimate.blocks += plan.blocks;
      estimate.blocks_done += plan.blocks - left;
      estimate.samples_left += static_cast<int64_t>(left) * estimate.arms;
      if (left == 0) continue;
      const double reference =
          sdpa::Flops(shape.problem) / (kReferenceFlopsPerCore * std::max(1, plan.cpu_cores));
      estimate.seconds_left +=
          kStartSeconds + kWarmUpSeconds + reference + 2e-6 * plan.replay_us * left * estimate.arms;
    }
  }
  estimate.samples = estimate.blocks * estimate.arms;
  return estimate;
}

}  // namespace warpledger::ablations
