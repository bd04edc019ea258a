// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace warpledger {
namespace {

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const int64_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    ParallelFor(count, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    for (const std::atomic<int>& n : calls) EXPECT_EQ(n, 1);
  }
}

TEST(ParallelForWith, GivesEachThreadAStateOfItsOwn) {
  std::atomic<int> made = 0;
  std::atomic<int64_t> sum = 0;
  std::atomic<int> at_once = 0;
  ParallelForWith(500, [&] {
    ++made;
    // Another thread in the same body would see the flag up.
    return [&, busy = std::make_shared<std::atomic<int>>(0)](int64_t i) {
      at_once += busy->fetch_add(1);
      sum += i;
      busy->fetch_sub(1);
    };
  });
  EXPECT_EQ(sum, 499 * 500 / 2);
  EXPECT_EQ(at_once, 0);
  EXPECT_GE(made, 1);
  EXPECT_LE(made, UsableCores());
}

TEST(UsableCores, AreThoseThatTheProcessIsHeldTo) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(UsableCores(), CPU_COUNT(&before));
  int some = 0;
  while (!CPU_ISSET(some, &before)) ++some;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(some, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace warpledger
