// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/estimate.h"

#include <string_view>

#include "ablations/subjects/sdpa/subject.h"
#include "gtest/gtest.h"
#include "tests/ablations/record/record_fixture.h"

namespace warpledger::ablations {
namespace {

RunPlan SmallPlan() {
  RunPlan plan;
  plan.design = *SdpaSubject().FindDesign("factorial");
  plan.shapes = *SdpaSubject().ParseProblems("small,long");
  plan.processes = 3;
  plan.blocks = 4;
  plan.replay_us = 1000;
  plan.cpu_cores = 8;
  return plan;
}

TEST(EstimateRunTest, CountsArmsKernelsBlocksAndSamples) {
  const RunPlan plan = SmallPlan();
  ASSERT_EQ(plan.shapes.size(), 2u);
  const RunEstimate estimate = EstimateRun(plan, {});
  EXPECT_EQ(estimate.arms, 24 + 2 + 1);  // cells, controls, the empty kernel
  EXPECT_EQ(estimate.kernels, 24 + 1);   // the A/A control is a cell over again
  EXPECT_EQ(estimate.blocks, 3 * 2 * 4);
  EXPECT_EQ(estimate.blocks_done, 0);
  EXPECT_EQ(estimate.samples, 24 * 27);
  EXPECT_EQ(estimate.samples_left, 24 * 27);
}

TEST(EstimateRunTest, LongerReplaysAndFewerCoresTakeLonger) {
  RunPlan plan = SmallPlan();
  const double seconds = EstimateRun(plan, {}).seconds_left;
  plan.replay_us += 1000;
  // Two replays a sample.
  EXPECT_NEAR(EstimateRun(plan, {}).seconds_left - seconds, 24 * 27 * 2e-3, 1e-9);
  plan.replay_us = 1000;
  plan.cpu_cores = 1;
  EXPECT_GT(EstimateRun(plan, {}).seconds_left, seconds + 3);
}

TEST(EstimateRunTest, LargeProblemsAreCheckedByASampleOfTheirRows) {
  const auto seconds = [](std::string_view name) {
    RunPlan plan = SmallPlan();
    plan.shapes = *SdpaSubject().ParseProblems(name);
    return EstimateRun(plan, {}).seconds_left;
  };
  EXPECT_GT(seconds("fa3_d64_s2048_full"), seconds("long"));
  EXPECT_DOUBLE_EQ(seconds("fa3_d64_s16384_full"), seconds("fa3_d64_s2048_full"));
}

TEST(EstimateRunTest, TheLargestPlanIsCountedAndNotWalkedThrough) {
  RunPlan plan = SmallPlan();
  plan.processes = kMostProcesses;
  plan.blocks = kMostBlocks;
  const RunEstimate estimate = EstimateRun(plan, {});
  EXPECT_EQ(estimate.blocks, int64_t{2} * kMostProcesses * kMostBlocks);
  EXPECT_EQ(estimate.samples_left, 27 * estimate.blocks);
}

TEST(EstimateRunTest, WhatTheRecordHoldsIsNotMeasuredAgain) {
  const RunPlan plan = SmallPlan();
  std::set<BlockKey> done;
  for (int block = 0; block < 4; ++block) {
    done.insert({.process = 0, .shape = "long", .block = block, .peers = false});
  }
  // Other runs' blocks: of peers, of a shape and of a process outside the plan.
  done.insert({.process = 1, .shape = "long", .block = 0, .peers = true});
  done.insert({.process = 1, .shape = "medium", .block = 0, .peers = false});
  done.insert({.process = 9, .shape = "long", .block = 0, .peers = false});
  const RunEstimate all = EstimateRun(plan, {});
  const RunEstimate rest = EstimateRun(plan, done);
  EXPECT_EQ(rest.blocks, all.blocks);
  EXPECT_EQ(rest.blocks_done, 4);
  EXPECT_EQ(rest.samples_left, all.samples_left - 4 * 27);
  EXPECT_LT(rest.seconds_left, all.seconds_left);
}

TEST(EstimateRunTest, ArmsAloneTakeTheirVisits) {
  RunPlan plan = SmallPlan();
  plan.alone = AlonePlan{.settle_s = 1, .window_s = 2};
  plan.processes = 2;
  plan.blocks = 1;
  const RunEstimate all = EstimateRun(plan, {});
  EXPECT_EQ(all.samples, 2 * 2 * static_cast<int64_t>(plan.design.arms.size()));
  EXPECT_GT(all.seconds_left, 3 * all.samples);
  EXPECT_LT(all.seconds_left, 3.5 * all.samples + 60);
  std::set<BlockKey> done = {{.process = 0, .shape = "small", .arm = plan.design.arms[0].name}};
  EXPECT_EQ(EstimateRun(plan, done).samples_left, all.samples - 1);
}

TEST(EstimateRunTest, AFinishedRunTakesNoTime) {
  RunPlan plan = SmallPlan();
  plan.processes = 1;
  plan.blocks = 1;
  const RunEstimate rest =
      EstimateRun(plan, {{.process = 0, .shape = "small", .block = 0, .peers = false},
                         {.process = 0, .shape = "long", .block = 0, .peers = false}});
  EXPECT_EQ(rest.samples_left, 0);
  EXPECT_EQ(rest.seconds_left, 0);
}

TEST(EstimateRunTest, AKnownTimeCountsWhatTheTimerWouldPlanForIt) {
  RunPlan plan = SmallPlan();
  plan.design.arms.resize(1);
  plan.shapes.resize(1);
  plan.processes = plan.blocks = 1;
  const std::string name = plan.design.arms[0].config;
  const std::string shape(plan.shapes[0].name);
  const auto more = [&](double us) {
    const RunEstimate blind = EstimateRun(plan, {});
    const RunEstimate known = EstimateRun(plan, {}, {{{name, shape}, us}});
    EXPECT_EQ(blind.times_known, 0);
    EXPECT_EQ(known.times, 2);  // and the empty kernel
    EXPECT_EQ(known.times_known, 1);
    return known.seconds_left - blind.seconds_left;
  };
  // Two replays: of 4 launches at least, of 256 at most, in fours, about 1000 us.
  EXPECT_NEAR(more(10000), 2 * (4 * 10000 - 1000) * 1e-6, 1e-12);
  EXPECT_NEAR(more(2), 2 * (256 * 2 - 1000) * 1e-6, 1e-12);
  EXPECT_NEAR(more(30), 2 * (36 * 30 - 1000) * 1e-6, 1e-12);
}

TEST(TimesInTest, AreMediansByConfigurationAndShapeWithoutPeers) {
  Record record;
  record.run = ExampleRun();
  record.run.arms.push_back({"peer:flash", "", "peer", "", ""});
  for (const double us : {3.0, 1.0, 2.0}) {
    record.samples.push_back(ExampleSample(0, "small", 0, 0, "ladder:wmma_qk", us));
    record.samples.push_back(ExampleSample(0, "small", 0, 0, "control:aa", 10 + us));
    record.samples.push_back(ExampleSample(0, "small", 0, 0, "floor:empty_kernel", us / 2));
    record.samples.push_back(ExampleSample(0, "small", 0, 0, "peer:flash", 100));
  }
  const KnownTimes known = TimesIn(record);
  EXPECT_EQ(known.size(), 2u);
  // One configuration under two names.
  EXPECT_EQ(known.at({"kv_tiling+wmma_qk", "small"}), 7);
  EXPECT_EQ(known.at({"", "small"}), 1);
}

TEST(CompletedOursTest, LeavesPeersOut) {
  Record record;
  record.samples = {ExampleSample(0, "small", 3, 0, "minimal_scalar", 1),
                    ExampleSample(0, "small", 3, 1, "ladder:kv_tiling", 1),
                    ExampleSample(1, "small", 4, 0, "peer:flash", 1)};
  const std::set<BlockKey> done = CompletedOurs(record);
  EXPECT_EQ(done.size(), 1u);
  EXPECT_TRUE(done.contains({.process = 0, .shape = "small", .block = 3, .peers = false}));
}

}  // namespace
}  // namespace warpledger::ablations
