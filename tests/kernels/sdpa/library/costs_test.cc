// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/costs.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/library/fitted_costs.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

constexpr int kSms = 132;

TEST(LibraryKernels, AreLegalAndHaveCosts) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    for (const bool causal : {false, true}) {
      const Config config = Specialise(kernel.config, kernel.head_dim, causal, kernel.dtype);
      EXPECT_FALSE(static_cast<bool>(WhyInvalid(config))) << kernel.name << " " << kernel.head_dim;
    }
    const auto fitted = std::count_if(
        std::begin(kFittedCosts), std::end(kFittedCosts), [&](const FittedCosts& costs) {
          return costs.name == kernel.name && costs.head_dim == kernel.head_dim &&
                 std::all_of(costs.us.begin(), costs.us.end(), [](double us) { return us >= 0; });
        });
    EXPECT_EQ(fitted, 1) << kernel.name << " " << kernel.head_dim;
  }
}

// Each of the suite's shapes, and the extremes of what a problem may be.
TEST(ChooseKernel, TakesOneThatTheLauncherTakes) {
  DeviceFacts device;
  device.compute_major = 9;
  device.max_smem_optin_bytes = 227 * 1024;
  std::vector<Problem> problems;
  for (const NamedShape& shape : kShapes) {
    if (shape.problem.embed_dim == 0) problems.push_back(shape.problem);
  }
  for (const int head_dim : kHeadDims) {
    problems.push_back({65536, 1, 1, 1, 1, head_dim, false});
    problems.push_back({1, 4096, 1, 1, 64, head_dim, true});
    problems.push_back({1, 1, 1, 1 << 20, 1, head_dim, true});
    problems.push_back({1, 1, 1, 1, 1 << 20, head_dim, false});
  }
  for (const Problem& problem : problems) {
    const LibraryKernel* kernel = ChooseKernel(problem, kSms);
    ASSERT_NE(kernel, nullptr) << ProblemName(problem);
    const Config config =
        Specialise(kernel->config, problem.head_dim, problem.causal, problem.dtype);
    EXPECT_EQ(CheckLaunchable(config, problem, device), absl::OkStatus());
    EXPECT_GT(ExpectedUs(*kernel, problem, kSms), 0);
  }
}

TEST(ChooseKernel, HasNoneForAnotherHeadDim) {
  EXPECT_EQ(ChooseKernel({1, 8, 8, 512, 512, 80, false}, kSms), nullptr);
}

// More heads, queries or keys never take less time by the terms of one kernel, but for the keys
// that a split or a packed group shares otherwise: prompts show it.
TEST(ExpectedUs, GrowsWithAPromptsLength) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    if (kernel.name != "pipelined") continue;
    double before = 0;
    for (int seq = 256; seq <= 16384; seq *= 2) {
      const double us =
          ExpectedUs(kernel, {1, 16, 16, seq, seq, kernel.head_dim, true, kernel.dtype}, kSms);
      EXPECT_GT(us, before) << seq;
      before = us;
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
