// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/estimate.h"

#include <algorithm>
#include <cmath>

#include "ablations/plan/job.h"
#include "ablations/stats/medians.h"
#include "micro/harness/replay.h"

namespace warpledger::ablations {
namespace {

// A process that finds the GPU, makes the inputs and captures the graphs, per shape.
constexpr double kStartSeconds = 1;
// The untimed replays before the first block of a shape (worker.cc), below the power limit.
constexpr double kWarmUpSeconds = 0.3;
// Until the energy counter steps, at either end of a visit, and until its queue is empty.
constexpr double kStepSeconds = 0.25;
// ComputeReference() does about so many of the shape's operations per second
// and core: 0.7e9 on a server's core at the shape `long`, and 1.7 times as many since its rows
// share a cache (4.1 CPU seconds before, 2.5 after on another core).
constexpr double kReferenceFlopsPerCore = 1.2e9;

// Operations of a reference: of larger problems a sample of the rows is checked.
constexpr double kMaxReferenceFlops = 1e10;

// One replay of a kernel that takes `us`, as the timer plans it.
double ReplayUs(const RunPlan& plan, double us) {
  return us * harness::PlanLaunches({.target_us = plan.replay_us,
                                     .min_launches = kInputSets,
                                     .max_launches = plan.max_launches / kInputSets * kInputSets,
                                     .multiple_of = kInputSets},
                                    us);
}

std::string ConfigOfFloor(const std::string& floor) { return floor == kFloorArm ? "" : floor; }

}  // namespace

std::set<BlockKey> CompletedOurs(const Record& record) {
  std::set<BlockKey> done;
  for (const Sample& sample : record.samples) {
    if (sample.arm.rfind(kPeerPrefix, 0) == 0) continue;
    done.insert({.process = sample.process,
                 .shape = sample.shape,
                 .block = sample.block,
                 .peers = false,
                 .arm = sample.IsVisit() ? sample.arm : ""});
  }
  return done;
}

KnownTimes TimesIn(const Record& record) {
  std::map<std::string, std::string> configs;
  for (const Arm& arm : record.run.arms) {
    if (arm.role == kRolePeer) continue;
    configs[arm.name] = arm.role == kRoleFloor ? ConfigOfFloor(arm.name) : arm.config;
  }
  std::map<std::pair<std::string, std::string>, std::vector<double>> samples;
  for (const Sample& sample : record.samples) {
    const auto config = configs.find(sample.arm);
    if (config != configs.end()) samples[{config->second, sample.shape}].push_back(sample.us);
  }
  KnownTimes known;
  for (auto& [key, us] : samples) known[key] = analysis::Median(std::move(us));
  return known;
}

RunEstimate EstimateRun(const RunPlan& plan, const std::set<BlockKey>& done,
                        const KnownTimes& known) {
  RunEstimate estimate;
  const std::vector<std::string> floors =
      plan.alone ? std::vector<std::string>() : plan.design.floors;
  estimate.arms = static_cast<int>(plan.design.arms.size() + floors.size());
  std::set<std::string> configs;
  for (const PlannedArm& arm : plan.design.arms) configs.insert(arm.config);
  estimate.kernels = static_cast<int>(configs.size());
  std::map<std::string, double> block_us;  // replays of all arms on a shape
  for (const ShapeInfo& shape : plan.shapes) {
    std::vector<std::string> names;
    for (const std::string& floor : floors) names.push_back(ConfigOfFloor(floor));
    for (const PlannedArm& arm : plan.design.arms) names.push_back(arm.config);
    for (const std::string& name : names) {
      const auto us = known.find({name, shape.name});
      const bool found = us != known.end() && us->second > 0;
      if (!plan.alone) {
        block_us[shape.name] += found ? ReplayUs(plan, us->second) : plan.replay_us;
      }
      ++estimate.times;
      estimate.times_known += found ? 1 : 0;
    }
  }
  std::map<std::pair<int, std::string>, int> done_of;  // blocks, by process and shape
  for (const BlockKey& key : done) {
    if (!key.peers && key.block < plan.blocks) ++done_of[{key.process, key.shape}];
  }
  for (int process = 0; process < plan.processes; ++process) {
    for (const ShapeInfo& shape : plan.shapes) {
      const auto found = done_of.find({process, shape.name});
      const int planned = plan.blocks * (plan.alone ? estimate.arms : 1);
      const int left = std::max(0, planned - (found == done_of.end() ? 0 : found->second));
      estimate.blocks += planned;
      estimate.blocks_done += planned - left;
      estimate.samples_left += static_cast<int64_t>(left) * (plan.alone ? 1 : estimate.arms);
      if (left == 0) continue;
      const double reference = std::min(shape.flops(), kMaxReferenceFlops) /
                               (kReferenceFlopsPerCore * std::max(1, plan.cpu_cores));
      estimate.seconds_left +=
          kStartSeconds + reference +
          (plan.alone ? left * (plan.alone->settle_s + plan.alone->window_s + kStepSeconds)
                      : kWarmUpSeconds + 2e-6 * left * block_us[shape.name]);
    }
  }
  estimate.samples = estimate.blocks * (plan.alone ? 1 : estimate.arms);
  return estimate;
}

}  // namespace warpledger::ablations
