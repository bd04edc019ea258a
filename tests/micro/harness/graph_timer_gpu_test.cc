#include "gtest/gtest.h"
#include "kernels/common/cuda_status.h"
#include "micro/harness/graph_timer.h"

namespace warpledger::harness {
namespace {

absl::Status LaunchEmpty(int /*index*/, cudaStream_t stream) {
  return CudaStatus(LaunchEmptyKernel(stream), "launching the empty kernel");
}

TEST(GraphTimer, TimesAnEmptyKernelBetweenATenthAndTenMicroseconds) {
  absl::StatusOr<GraphTimer> timer = GraphTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  absl::StatusOr<TimedGraph> graph = timer->Capture(200, LaunchEmpty);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->launches(), 200);
  const absl::StatusOr<double> us = timer->ReplayUs(*graph);
  ASSERT_TRUE(us.ok()) << us.status();
  EXPECT_GT(*us, 0.1);
  EXPECT_LT(*us, 10.0);
}

TEST(GraphTimer, GivesTheTimeOfOneLaunchWhateverTheLengthOfTheReplay) {
  absl::StatusOr<GraphTimer> timer = GraphTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  // Two launches in one call take twice the time of one.
  const auto twice = [](int index, cudaStream_t stream) {
    const absl::Status status = LaunchEmpty(index, stream);
    return status.ok() ? LaunchEmpty(index, stream) : status;
  };
  double best_once = 1e9;
  double best_twice = 1e9;
  absl::StatusOr<TimedGraph> once_graph = timer->Capture(100, LaunchEmpty);
  absl::StatusOr<TimedGraph> twice_graph = timer->Capture(100, twice);
  ASSERT_TRUE(once_graph.ok() && twice_graph.ok());
  for (int i = 0; i < 20; ++i) {
    best_once = std::min(best_once, timer->ReplayUs(*once_graph).value());
    best_twice = std::min(best_twice, timer->ReplayUs(*twice_graph).value());
  }
  EXPECT_NEAR(best_twice / best_once, 2.0, 0.3);
}

TEST(GraphTimer, RotatesOverTheIndicesInOrder) {
  absl::StatusOr<GraphTimer> timer = GraphTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  std::vector<int> seen;
  ASSERT_TRUE(timer
                  ->Capture(5,
                            [&](int index, cudaStream_t stream) {
                              seen.push_back(index);
                              return LaunchEmpty(index, stream);
                            })
                  .ok());
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(GraphTimer, PassesOnALaunchThatFailsAndStaysUsable) {
  absl::StatusOr<GraphTimer> timer = GraphTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  const absl::StatusOr<TimedGraph> failed =
      timer->Capture(3, [](int, cudaStream_t) { return absl::InternalError("this launch fails"); });
  EXPECT_EQ(failed.status().message(), "this launch fails");
  EXPECT_TRUE(timer->Capture(3, LaunchEmpty).ok());
}

}  // namespace
}  // namespace warpledger::harness
