// SPDX-License-Identifier: Apache-2.0
// Whether rotating over kColdL2Multiple times the L2 makes it cold: launches that
// each read a set of the size of mission_b's Q, K, V and O take as long as where
// the rotation is far longer, and longer than where all sets stay in the L2.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "ablations/plan/job.h"
#include "kernels/common/cuda_status.h"
#include "kernels/common/device.h"
#include "micro/harness/graph_timer.h"

namespace warpledger::ablations {
namespace {

constexpr size_t kBytes = size_t{2} << 20;  // of mission_b's Q, K, V and O
constexpr int kThreads = 256;

// Every byte of the set once, as 16-byte loads.
__global__ void ReadSet(const uint4* set, size_t count, unsigned* sink) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * kThreads) {
    const uint4 value = set[i];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x12345678) *sink = sum;  // never: keeps the loads alive
}

TEST(ColdRotation, ReadsTakeAsLongAsFromDramAndLongerThanFromTheL2) {
  const DeviceFacts device = QueryDevice().value();
  const auto sets_of = [&](double multiple) {
    return std::max(kInputSets, static_cast<int>(multiple * device.l2_bytes / kBytes));
  };
  const std::vector<double> multiples = {0, 0.25, 0.5, 1, 1.5, kColdL2Multiple, 3, 4, 6, 10};
  DeviceBuffer memory =
      DeviceBuffer::Allocate(kBytes * sets_of(multiples.back()) + sizeof(unsigned)).value();
  ASSERT_TRUE(memory.Fill(1).ok());
  auto* base = static_cast<std::byte*>(memory.data());
  auto* sink = reinterpret_cast<unsigned*>(base + kBytes * sets_of(multiples.back()));
  harness::GraphTimer timer = harness::GraphTimer::Create().value();

  std::map<double, double> median_us;
  for (const double multiple : multiples) {
    const int sets = sets_of(multiple);
    const int launches = (600 / sets + 1) * sets;
    absl::StatusOr<harness::TimedGraph> graph =
        timer.Capture(launches, [&](int i, cudaStream_t stream) {
          const auto* set = reinterpret_cast<const uint4*>(base + kBytes * (i % sets));
          ReadSet<<<2 * device.sm_count, kThreads, 0, stream>>>(set, kBytes / sizeof(uint4), sink);
          return CudaStatus(cudaGetLastError(), "launching a read");
        });
    ASSERT_TRUE(graph.ok()) << graph.status();
    std::vector<double> us;
    for (int i = 0; i < 15; ++i) us.push_back(timer.ReplayUs(*graph).value());
    std::nth_element(us.begin(), us.begin() + 7, us.end());
    median_us[multiple] = us[7];
    std::printf("%4d sets, %5.2f times the L2: %.3f us per launch\n", sets,
                static_cast<double>(sets) * static_cast<double>(kBytes) /
                    static_cast<double>(device.l2_bytes),
                us[7]);
  }
  EXPECT_GT(median_us[kColdL2Multiple], 1.1 * median_us[0]);
  EXPECT_NEAR(median_us[kColdL2Multiple] / median_us[multiples.back()], 1, 0.05);
}

}  // namespace
}  // namespace warpledger::ablations
