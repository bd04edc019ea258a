#include "kernels/common/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
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
  EXPECT_LE(made, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace warpledger
