// SPDX-License-Identifier: Apache-2.0
// A small, invented run for the tests of the record: three arms, two controls,
// a floor and a peer on two shapes.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "ablations/record/store.h"

namespace warpledger::ablations {

// One batch of square self-attention at head_dim 64.
inline ShapeInfo ExampleShape(const std::string& name, int heads, int seq) {
  const double pairs = static_cast<double>(heads) * seq * seq;
  return {name,
          {{"batch", 1},
           {"heads_q", heads},
           {"heads_kv", heads},
           {"seq_q", seq},
           {"seq_kv", seq},
           {"head_dim", 64},
           {"causal", false},
           {"flops", 256 * pairs},
           {"min_bytes", 512.0 * heads * seq},
           {"exponentials", pairs}}};
}

inline RunInfo ExampleRun() {
  RunInfo run;
  run.run_id = "2026-01-02-example";
  run.created_utc = "2026-01-02T03:04:05Z";
  run.design = "ladder";
  run.family = "ladder";
  run.argv = {"warpledger", "run", "--design=ladder"};
  run.seed = 18446744073709551615u;
  run.processes = 3;
  run.blocks_per_process = 8;
  run.cache = "warm";
  run.replay_us = 1000;
  run.max_launches = 256;
  run.shapes = {ExampleShape("small", 1, 32), ExampleShape("mission_b", 8, 512)};
  run.arms = {
      {"minimal_scalar", "minimal_scalar", "base", "", ""},
      {"ladder:kv_tiling", "kv_tiling", "step", "kv_tiling", "minimal_scalar"},
      {"ladder:wmma_qk", "kv_tiling+wmma_qk", "step", "wmma_qk", "ladder:kv_tiling"},
      {"control:aa", "kv_tiling+wmma_qk", "aa", "", "ladder:wmma_qk"},
      {"control:null_toggle", "kv_tiling+wmma_qk+null_toggle", "null", "null_toggle",
       "ladder:wmma_qk"},
      {"floor:empty_kernel", "", "floor", "", ""},
  };
  run.git = {"0123abcd", true};
  run.registry_sha256 = "aa";
  run.kernel_source_sha256 = "bb";
  run.protocol_sha256 = "cc";
  run.toolchain = {"13.0.0", "g++ 12.2.0", "Release", "-O3", "90"};
  run.gpu = {"NVIDIA H200", "h200", "GPU-1", "9.0", 132,  62914560, 150754820096,
             "580.0",       "13.0", true,    1980,  3201, 700.0};
  return run;
}

inline Sample ExampleSample(int process, const std::string& shape, int block, int order,
                            const std::string& arm, double us) {
  Sample sample;
  sample.process = process;
  sample.shape = shape;
  sample.block = block;
  sample.order = order;
  sample.arm = arm;
  sample.launches = 64;
  sample.us = us;
  sample.sm_mhz = 1980;
  sample.temp_c = 41;
  sample.power_w = 310.5;
  sample.throttle = 0;
  sample.cache = "warm";
  return sample;
}

// Every arm of ExampleRun once.
inline std::vector<Sample> ExampleBlock(int process, const std::string& shape, int block) {
  std::vector<Sample> samples;
  for (const Arm& arm : ExampleRun().arms) {
    const int order = static_cast<int>(samples.size());
    samples.push_back(ExampleSample(process, shape, block, order, arm.name, 10.0 + order));
  }
  return samples;
}

inline Check ExampleCheck(const std::string& arm, const std::string& shape) {
  Check check;
  check.arm = arm;
  check.shape = shape;
  check.inputs = "normal";
  check.seed = 1;
  check.correct = true;
  check.max_err = 3.1e-05;
  check.max_err_limit = 1.2e-04;
  check.mean_err = 1e-06;
  check.mean_err_limit = 2e-06;
  check.lse_err = 1e-06;
  check.lse_limit = 1e-05;
  check.guards_intact = true;
  check.bit_identical = true;
  return check;
}

// A check that each arm but the floors passes at each of the run's shapes.
inline std::vector<Check> PassingChecks(const RunInfo& run) {
  std::vector<Check> checks;
  for (const Arm& arm : run.arms) {
    for (const ShapeInfo& shape : run.shapes) {
      if (arm.role != kRoleFloor) checks.push_back(ExampleCheck(arm.name, shape.name));
    }
  }
  return checks;
}

// What a whole run leaves whose samples take the times that `us_of` says; every check passes.
//   peer: timed in blocks of its own; empty: none
inline Record TimedRecord(const RunInfo& run, const std::function<double(const Sample&)>& us_of,
                          const std::string& peer = "") {
  Record record;
  record.run = run;
  record.checks = PassingChecks(run);
  for (int process = 0; process < run.processes; ++process) {
    for (const ShapeInfo& shape : run.shapes) {
      for (int block = 0; block < run.blocks_per_process; ++block) {
        std::vector<Sample> samples = ExampleBlock(process, shape.name, block);
        for (Sample& sample : samples) sample.of = static_cast<int>(samples.size());
        if (!peer.empty()) {
          samples.push_back(ExampleSample(process, shape.name, block, 0, peer, 0));
          samples.back().of = 1;
        }
        for (Sample& sample : samples) {
          sample.us = us_of(sample);
          sample.seq = static_cast<int64_t>(record.samples.size());
          record.samples.push_back(sample);
        }
      }
    }
  }
  return record;
}

// What a whole run of ExampleRun() leaves.
inline Record JudgeableRecord() {
  return TimedRecord(ExampleRun(), [](const Sample& sample) { return sample.us; });
}

}  // namespace warpledger::ablations
