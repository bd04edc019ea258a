// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "kernels/common/cuda_status.h"
#include "micro/harness/graph_timer.h"
#include "micro/harness/spin_kernel.h"

namespace warpledger::harness {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

absl::Status LaunchEmpty(int /*index*/, cudaStream_t stream) {
  return CudaStatus(LaunchEmptyKernel(stream), "launching the empty kernel");
}

TEST(GraphTimer, TimesAnEmptyKernelBetweenATenthAndTenMicroseconds) {
  GraphTimer timer = GraphTimer::Create().value();
  TimedGraph graph = timer.Capture(200, LaunchEmpty).value();
  EXPECT_EQ(graph.launches(), 200);
  const absl::StatusOr<double> us = timer.ReplayUs(graph);
  ASSERT_TRUE(us.ok()) << us.status();
  EXPECT_GT(*us, 0.1);
  EXPECT_LT(*us, 10.0);
}

TEST(GraphTimer, GivesTheTimeOfOneLaunchWhateverTheLengthOfTheReplay) {
  GraphTimer timer = GraphTimer::Create().value();
  // Two launches in one call take twice the time of one.
  const auto twice = [](int index, cudaStream_t stream) {
    const absl::Status status = LaunchEmpty(index, stream);
    return status.ok() ? LaunchEmpty(index, stream) : status;
  };
  double best_once = 1e9;
  double best_twice = 1e9;
  absl::StatusOr<TimedGraph> once_graph = timer.Capture(100, LaunchEmpty);
  absl::StatusOr<TimedGraph> twice_graph = timer.Capture(100, twice);
  ASSERT_TRUE(once_graph.ok() && twice_graph.ok());
  for (int i = 0; i < 20; ++i) {
    best_once = std::min(best_once, timer.ReplayUs(*once_graph).value());
    best_twice = std::min(best_twice, timer.ReplayUs(*twice_graph).value());
  }
  EXPECT_NEAR(best_twice / best_once, 2.0, 0.3);
}

// One thread that waits for so many cycles tells the clock in another way.
TEST(GraphTimer, TheClockOfAReplayIsTheOneThatItsCyclesTook) {
  GraphTimer timer = GraphTimer::Create().value();
  constexpr int64_t kCycles = 4'000'000;
  absl::StatusOr<TimedGraph> graph = timer.Capture(1, [&](int /*index*/, cudaStream_t stream) {
    return CudaStatus(LaunchSpin(kCycles, stream), "launching a delay");
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(timer.Replay(*graph).ok());  // raises the clocks
  for (int i = 0; i < 5; ++i) {
    const ReplaySample replay = timer.Replay(*graph).value();
    EXPECT_NEAR(replay.us * replay.sm_mhz / kCycles, 1, 0.005) << replay.us;
  }
}

TEST(GraphTimer, RotatesOverTheIndicesInOrder) {
  GraphTimer timer = GraphTimer::Create().value();
  std::vector<int> seen;
  ASSERT_TRUE(timer
                  .Capture(5,
                           [&](int index, cudaStream_t stream) {
                             seen.push_back(index);
                             return LaunchEmpty(index, stream);
                           })
                  .ok());
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(GraphTimer, ByStreamLaunchesTheSameAndTakesLongerThanByGraph) {
  GraphTimer timer = GraphTimer::Create().value();
  int calls = 0;
  const auto count = [&calls](int index, cudaStream_t stream) {
    ++calls;
    return LaunchEmpty(index, stream);
  };
  absl::StatusOr<TimedGraph> by_graph = timer.Capture(100, LaunchEmpty);
  absl::StatusOr<TimedGraph> by_stream = timer.Capture(100, count, LaunchedBy::kStream);
  ASSERT_TRUE(by_graph.ok() && by_stream.ok());
  EXPECT_EQ(calls, 100) << "once to be read";
  double best_graph = 1e9;
  double best_stream = 1e9;
  for (int i = 0; i < 20; ++i) {
    best_graph = std::min(best_graph, timer.ReplayUs(*by_graph).value());
    best_stream = std::min(best_stream, timer.ReplayUs(*by_stream).value());
  }
  EXPECT_EQ(calls, 100 + 20 * 200) << "each replay has one untimed ahead";
  EXPECT_GT(best_stream, 1.5 * best_graph);
}

// --- What a call launches --------------------------------------------------------

std::vector<std::string> LinesOf(const LaunchFunction& launch, LaunchedBy by) {
  GraphTimer timer = GraphTimer::Create().value();
  TimedGraph graph = timer.Capture(4, launch, by).value();
  return graph.call().value();
}

TEST(CallLines, NameTheKernelAndHowItIsLaunched) {
  const std::vector<std::string> lines = LinesOf(LaunchEmpty, LaunchedBy::kGraph);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "by graph");
  EXPECT_THAT(lines[1], MatchesRegex("kernel .*Empty.* grid 1x1x1 block 32x1x1 smem 0 B"));
  EXPECT_EQ(LinesOf(LaunchEmpty, LaunchedBy::kStream)[0], "by stream");
}

TEST(CallLines, HaveALinePerKernelOfACall) {
  const auto twice = [](int index, cudaStream_t stream) {
    const absl::Status status = LaunchEmpty(index, stream);
    return status.ok() ? LaunchEmpty(index, stream) : status;
  };
  EXPECT_EQ(LinesOf(twice, LaunchedBy::kGraph).size(), 3u);
}

// A window that the stream has while it is captured must be the node's.
TEST(CallLines, ShowAPersistingWindowOfL2) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  const auto in_window = [memory](int index, cudaStream_t stream) -> absl::Status {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow = {memory, 1 << 20, 0.5f, cudaAccessPropertyPersisting,
                                cudaAccessPropertyStreaming};
    RETURN_IF_CUDA_ERROR(
        cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value), "opening");
    RETURN_IF_ERROR(LaunchEmpty(index, stream));
    value = {};
    RETURN_IF_CUDA_ERROR(
        cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value), "closing");
    return absl::OkStatus();
  };
  const std::vector<std::string> lines = LinesOf(in_window, LaunchedBy::kGraph);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[1], HasSubstr(" window 1048576 B hit 0.50"));
  EXPECT_THAT(LinesOf(LaunchEmpty, LaunchedBy::kGraph)[1], Not(HasSubstr("window")));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(GraphTimer, PassesOnALaunchThatFailsAndStaysUsable) {
  GraphTimer timer = GraphTimer::Create().value();
  const absl::StatusOr<TimedGraph> failed =
      timer.Capture(3, [](int, cudaStream_t) { return absl::InternalError("this launch fails"); });
  EXPECT_EQ(failed.status().message(), "this launch fails");
  EXPECT_TRUE(timer.Capture(3, LaunchEmpty).ok());
}

TEST(GraphTimer, CapturesOnceWhatTheFewestLaunchesFill) {
  GraphTimer timer = GraphTimer::Create().value();
  const ReplayPlan plan = {
      .target_us = 1000, .min_launches = 4, .max_launches = 256, .multiple_of = 4};
  const auto captured_with = [&](int64_t cycles) {
    std::vector<int> seen;
    absl::StatusOr<TimedGraph> graph =
        timer.CaptureForPlan(plan, [&](int index, cudaStream_t stream) {
          seen.push_back(index);
          return CudaStatus(LaunchSpin(cycles, stream), "launching a delay");
        });
    EXPECT_TRUE(graph.ok()) << graph.status();
    return seen;
  };
  EXPECT_EQ(captured_with(4'000'000), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_GT(captured_with(40'000).size(), 4 + 20);  // 20 us and more each
}

}  // namespace
}  // namespace warpledger::harness
