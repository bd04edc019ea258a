// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/costs.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "kernels/sdpa/library/fitted_costs.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

constexpr int kSms = 132;

TEST(LibraryKernels, AreLegalAndHaveCosts) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    for (const bool causal : {false, true}) {
      for (const Config& any : {kernel.config, BuiltForLibrary(kernel.config)}) {
        const Config config = Specialise(any, kernel.head_dim, causal, kernel.dtype);
        EXPECT_FALSE(static_cast<bool>(WhyInvalid(config)))
            << kernel.name << " " << kernel.head_dim;
      }
    }
    const auto fitted = std::count_if(
        std::begin(kFittedCosts), std::end(kFittedCosts), [&](const FittedCosts& costs) {
          return costs.name == CostsOf(kernel) && costs.head_dim == kernel.head_dim &&
                 std::all_of(costs.us.begin(), costs.us.end(), [](double us) { return us >= 0; });
        });
    EXPECT_EQ(fitted, 1) << kernel.name << " " << kernel.head_dim;
  }
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
