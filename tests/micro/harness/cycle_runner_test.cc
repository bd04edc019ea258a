// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/cycle_runner.h"

#include <vector>

#include "gmock/gmock.h"

namespace warpledger::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CyclesBySm, SpansFromTheFirstStartToTheLastStopOfAnSm) {
  const auto cycles =
      CyclesBySm({{100, 180, 7, 0}, {90, 170, 7, 0}, {1000, 1050, 3, 1}, {1010, 1070, 3, 1}}, 1)
          .value();
  EXPECT_THAT(cycles, ElementsAre(70, 90));
}

TEST(CyclesBySm, LeavesOutSmsWithAnotherNumberOfCtas) {
  const std::vector<WarpStamp> stamps = {{0, 50, 0, 0}, {0, 60, 1, 1}, {5, 90, 1, 2}};
  EXPECT_THAT(*CyclesBySm(stamps, 1), ElementsAre(50));
  EXPECT_THAT(*CyclesBySm(stamps, 2), ElementsAre(90));
  EXPECT_THAT(*CyclesBySm(stamps, 0), ElementsAre(50, 90));
  const auto none = CyclesBySm(stamps, 3);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CyclesBySm, RefusesAWarpThatStampedNothing) {
  const auto cycles = CyclesBySm({{0, 50, 0, 0}, {0, 0, 0, 0}}, 1);
  EXPECT_EQ(cycles.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(cycles.status().message()), HasSubstr("StopCycles"));
}

TEST(CycleCase, LaunchesOneWarpForALatencyAndAllSmsForAThroughput) {
  const CycleCase latency = {.about = {}, .measure = Measure::kLatency};
  EXPECT_EQ(ThreadsOf(latency), 32);
  EXPECT_EQ(CtasOf(latency, 132), 1);
  const CycleCase throughput = {.about = {}, .measure = Measure::kThroughput, .ctas_per_sm = 2};
  EXPECT_EQ(ThreadsOf(throughput), 512);
  EXPECT_EQ(CtasOf(throughput, 132), 264);
  const CycleCase cluster = {.about = {}, .threads = 128, .ctas = 4};
  EXPECT_EQ(ThreadsOf(cluster), 128);
  EXPECT_EQ(CtasOf(cluster, 132), 4);
}

TEST(CycleCase, CountsUnitsAlongOneChainOrOverAllThreadsOfAnSm) {
  const CycleCase latency = {
      .about = {}, .measure = Measure::kLatency, .units_per_iteration = 16, .threads = 64};
  EXPECT_EQ(UnitsOf(latency, 10), 160);
  const CycleCase throughput = {.about = {},
                                .measure = Measure::kThroughput,
                                .units_per_iteration = 32,
                                .threads = 256,
                                .ctas_per_sm = 2};
  EXPECT_EQ(UnitsOf(throughput, 10), 32.0 * 10 * 256 * 2);
}

TEST(CycleCase, InvertsTheSlopeOfAThroughputAlone) {
  EXPECT_EQ(ValueOf(Measure::kLatency, 0.25), 0.25);
  EXPECT_EQ(ValueOf(Measure::kThroughput, 0.25), 4);
}

}  // namespace
}  // namespace warpledger::harness
