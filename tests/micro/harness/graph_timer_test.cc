// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/graph_timer.h"

#include "gtest/gtest.h"

namespace warpledger::harness {
namespace {

TEST(PlanLaunches, FillsTheTargetWithinTheLimitsInWholeRotations) {
  const ReplayPlan plan = {
      .target_us = 1000, .min_launches = 4, .max_launches = 256, .multiple_of = 4};
  EXPECT_EQ(PlanLaunches(plan, 10), 100);
  EXPECT_EQ(PlanLaunches(plan, 9.9), 104);  // 101.01, rounded up to a rotation
  EXPECT_EQ(PlanLaunches(plan, 0.5), 256);  // at most
  EXPECT_EQ(PlanLaunches(plan, 20000), 4);  // at least
  EXPECT_EQ(PlanLaunches(plan, 0), 256);    // too short to see
}

}  // namespace
}  // namespace warpledger::harness
