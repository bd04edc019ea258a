// SPDX-License-Identifier: Apache-2.0
// Invented records for the tests that hold two of them against each other.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ablations/judge/compare/compare.h"
#include "ablations/stats/random.h"
#include "ablations/subjects/sdpa/subject.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {

inline double ExampleUs(const std::string& arm) {
  if (arm == "minimal_scalar") return 100;
  if (arm == "ladder:kv_tiling") return 125;
  return arm == "floor:empty_kernel" ? 2.5 : 80;
}

struct ExampleNoise {
  int processes = 5;
  double process = 0.001;  // full width of the spread between processes
  double block = 0.004;    // full width inside one
};

// ExampleRun with samples of ExampleUs, and a peer; every check passes.
inline Record ExampleRecord(uint64_t seed, const ExampleNoise& noise = {}) {
  RunInfo run = ExampleRun();
  run.run_id = "example-" + std::to_string(seed);
  run.processes = noise.processes;
  analysis::Random random(seed);
  int process = -1;
  double of_process = 1;
  const auto us_of = [&](const Sample& sample) {
    if (sample.process != process) of_process = 1 + noise.process * (random.Uniform() - 0.5);
    process = sample.process;
    return ExampleUs(sample.arm) * of_process * (1 + noise.block * (random.Uniform() - 0.5));
  };
  Record record = TimedRecord(run, us_of, "peer:flash");
  record.codegen = Codegen{"",
                           {{"minimal_scalar", "sm_90", "hash0", "p0", {}},
                            {"kv_tiling", "sm_90", "hash1", "p1", {}},
                            {"kv_tiling+wmma_qk", "sm_90", "hash2", "p2", {}}}};
  record.resources =
      std::vector<InstanceResources>{{"minimal_scalar", "sm_90", 30, 512, 0, 0, 0},
                                     {"kv_tiling", "sm_90", 40, 1024, 0, 0, 0},
                                     {"kv_tiling+wmma_qk", "sm_90", 50, 64, 0, 0, 0}};
  PeerInfo peer;
  peer.name = "peer:flash";
  peer.version = "1.0";
  peer.available = true;
  record.peers = {peer};
  return record;
}

// Multiplies the times of one arm on one shape; "" stands for all shapes.
inline void ScaleTimes(Record& record, const std::string& arm, const std::string& shape,
                       double factor) {
  for (Sample& sample : record.samples) {
    if (sample.arm == arm && (shape.empty() || sample.shape == shape)) sample.us *= factor;
  }
}

// A record of visits, in which the GPU waited for the host in the first `count` of an arm on a
// shape. These visits are twice as slow.
inline void StarveVisits(Record& record, const std::string& arm, const std::string& shape,
                         int count) {
  record.run.alone = AlonePlan{};
  for (Sample& sample : record.samples) {
    sample.window_s = 1;
    sample.idle_share = 0.0005;
    if (sample.arm != arm || sample.shape != shape || --count < 0) continue;
    sample.idle_share = 0.3;
    sample.us *= 2;
  }
}

// Drops an arm from everything that names it.
inline void DropArm(Record& record, const std::string& name) {
  std::erase_if(record.run.arms, [&](const Arm& arm) { return arm.name == name; });
  std::erase_if(record.samples, [&](const Sample& sample) { return sample.arm == name; });
  std::erase_if(record.checks, [&](const Check& check) { return check.arm == name; });
}

inline JudgedRecord Judged(Record record, int resamples = 500) {
  absl::StatusOr<summary::Summary> summary =
      Summarize(record, SdpaSubject(), {.bootstrap_resamples = resamples});
  EXPECT_TRUE(summary.ok()) << summary.status();
  return {std::move(record), summary.ok() ? *std::move(summary) : summary::Summary()};
}

}  // namespace warpledger::ablations
