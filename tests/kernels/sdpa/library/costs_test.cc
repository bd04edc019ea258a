// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/costs.h"

#include <algorithm>
#include <string_view>

#include "gtest/gtest.h"
#include "kernels/sdpa/library/fitted_costs.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

constexpr Gpu kGpu = {132};
constexpr Gpu kH200 = {132, 6144};

TEST(LibraryKernels, AreLegalAndHaveCosts) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    for (const bool causal : {false, true}) {
      for (const Config& any : {kernel.config, BuiltForLibrary(kernel),
                                HasClusterForm(kernel) ? ClusterForm(kernel) : kernel.config}) {
        const Config config = Specialise(any, kernel.head_dim, causal, kernel.dtype);
        EXPECT_FALSE(static_cast<bool>(WhyInvalid(config)))
            << kernel.name << " " << kernel.head_dim;
      }
    }
    const auto fitted = std::count_if(
        std::begin(kFittedCosts), std::end(kFittedCosts), [&](const FittedCosts& costs) {
          return costs.name == CostsOf(kernel) && costs.head_dim == CostsHeadDim(kernel) &&
                 std::all_of(costs.us.begin(), costs.us.end(), [](double us) { return us >= 0; });
        });
    EXPECT_EQ(fitted, 1) << kernel.name << " " << kernel.head_dim;
  }
}

TEST(LibraryKernels, ReadScalesWhereTheCallerHasThem) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    EXPECT_EQ(BuiltForLibrary(kernel).scale_strides, TakesE4m3(kernel)) << kernel.name;
    EXPECT_FALSE(kernel.config.scale_strides) << "a design's have the host's";
  }
}

TEST(CostTermsOf, CountBytesOfE4m3) {
  const auto kernel_of = [](std::string_view name) {
    return *std::find_if(
        std::begin(kLibraryKernels), std::end(kLibraryKernels),
        [&](const LibraryKernel& any) { return any.name == name && any.head_dim == 128; });
  };
  const auto megabytes = [&](std::string_view name) {
    constexpr int kMegabytes = 5;
    EXPECT_STREQ(kCostTermNames[kMegabytes], "kv MB");
    return CostTermsOf(kernel_of(name), {1, 8, 8, 1000, 1000, 128, false}, kGpu)[kMegabytes];
  };
  EXPECT_DOUBLE_EQ(2 * megabytes("pipelined_e4m3"), megabytes("pipelined"));
}

// By the costs of head_dim 128: at 64 half the products and as many exponentials, at 256 twice the
// products. They say no more than that until there are records.
TEST(ExpectedUs, OfE4m3AtOtherHeadDimsIsThatOf128InProportion) {
  const auto us = [](std::string_view name, int head_dim) {
    const auto* const kernel = std::find_if(
        std::begin(kLibraryKernels), std::end(kLibraryKernels),
        [&](const LibraryKernel& any) { return any.name == name && any.head_dim == head_dim; });
    return ExpectedUs(*kernel, {2, 16, 16, 8192, 8192, head_dim, false}, kGpu);
  };
  for (const std::string_view name : {"pipelined_e4m3", "pipelined_e4m3_blocks"}) {
    const double at_128 = us(name, 128);
    EXPECT_NEAR(us(name, 64) / at_128, 1.0, 0.1) << name;
    EXPECT_NEAR(us(name, 256) / at_128, 2.0, 0.1) << name;
  }
}

TEST(IsFasterForm, GoesByKeysMaskAndHowManyTilesThereAre) {
  const auto faster = [](std::string_view name, const Problem& problem, const Gpu& gpu = kGpu) {
    const auto* const kernel =
        std::find_if(std::begin(kLibraryKernels), std::end(kLibraryKernels), [&](const auto& any) {
          return any.name == name && any.head_dim == problem.head_dim && any.dtype == problem.dtype;
        });
    EXPECT_FALSE(kernel->form_of.empty()) << name;
    return IsFasterForm(*kernel, problem, gpu);
  };
  const auto of = [](int keys, int head_dim, bool causal) {
    return Problem{16384 / keys, 2048 / head_dim, 2048 / head_dim, keys, keys, head_dim, causal};
  };
  for (const bool causal : {false, true}) {
    EXPECT_FALSE(faster("pipelined_two_warpgroups_reread", of(512, 64, causal)));
    EXPECT_TRUE(faster("pipelined_two_warpgroups_reread", of(1024, 64, causal)));
    for (const int head_dim : {128, 256}) {
      EXPECT_FALSE(faster("pipelined_pairs", of(512, head_dim, causal)));
      EXPECT_EQ(faster("pipelined_pairs", of(1024, head_dim, causal)), !causal);
      EXPECT_EQ(faster("pipelined_pairs", of(2048, head_dim, causal)), !causal);
      EXPECT_EQ(faster("pipelined_pairs", of(4096, head_dim, causal)), head_dim == 256 || !causal);
      EXPECT_TRUE(faster("pipelined_pairs", of(8192, head_dim, causal)));
    }
    EXPECT_EQ(faster("pipelined_short_pairs", of(512, 128, causal)), causal);
    EXPECT_FALSE(faster("pipelined_short", of(512, 128, causal)));
    EXPECT_FALSE(faster("pipelined_short_pairs", of(512, 128, causal), kH200));
    EXPECT_EQ(faster("pipelined_short", of(512, 128, causal), kH200), causal);
    EXPECT_EQ(faster("pipelined_short", of(1024, 128, causal)), causal);
    EXPECT_FALSE(faster("pipelined_short", of(2048, 128, causal)));
  }
  // Too few tiles to fill the GPU several times with pairs.
  EXPECT_FALSE(faster("pipelined_pairs", {1, 2, 2, 8192, 8192, 128, false}));
  EXPECT_FALSE(faster("pipelined_short_pairs", {2, 16, 16, 512, 512, 128, true}));
  EXPECT_TRUE(faster("pipelined_short", {2, 16, 16, 512, 512, 128, true}));
}

TEST(ExpectedUs, OfTheFormThatIsFasterIsLess) {
  for (const LibraryKernel& form : kLibraryKernels) {
    if (form.form_of.empty()) continue;
    const auto* const of =
        std::find_if(std::begin(kLibraryKernels), std::end(kLibraryKernels), [&](const auto& any) {
          return any.name == form.form_of && any.head_dim == form.head_dim &&
                 any.dtype == form.dtype;
        });
    ASSERT_LT(of, &form) << form.name;
    int faster = 0;
    for (const int keys : {512, 1024, 2048, 4096, 8192}) {
      for (const bool causal : {false, true}) {
        const int heads = 2048 / form.head_dim;
        Problem p = {16384 / keys, heads, heads, keys, keys, form.head_dim, causal};
        p.dtype = form.dtype;
        if (!IsFasterForm(form, p, kGpu)) continue;
        ++faster;
        EXPECT_LT(ExpectedUs(form, p, kGpu), ExpectedUs(*of, p, kGpu)) << form.name << keys;
      }
    }
    EXPECT_GT(faster, 0) << form.name;
  }
}

TEST(TakesClusterForm, WhereHalfOfTheSmsFillSmallClusters) {
  const auto takes = [](const Problem& problem) {
    const auto* const kernel =
        std::find_if(std::begin(kLibraryKernels), std::end(kLibraryKernels), [&](const auto& any) {
          return any.name == "split_wgmma" && any.head_dim == problem.head_dim &&
                 any.dtype == problem.dtype;
        });
    return TakesClusterForm(*kernel, problem, kGpu);
  };
  EXPECT_TRUE(takes({1, 64, 8, 8, 8192, 128, false}));
  EXPECT_TRUE(takes({2, 64, 8, 2, 8192, 128, true}));
  EXPECT_FALSE(takes({1, 64, 8, 16, 8192, 128, false})) << "two tiles of queries read each key";
  EXPECT_FALSE(takes({1, 32, 4, 4, 8192, 128, false})) << "16 CTAs a head";
  EXPECT_FALSE(takes({1, 96, 12, 2, 8192, 128, false})) << "60 of 66 pairs of SMs";
  EXPECT_FALSE(takes({1, 64, 8, 8, 256, 128, false})) << "four tiles of keys";
  EXPECT_FALSE(takes({64, 64, 8, 1, 8192, 128, false}));
  EXPECT_FALSE(takes({1, 64, 8, 8, 8192, 64, false}));
}

// More heads, queries or keys never take less time by the terms of one kernel, but for the keys
// that a split or a packed group shares otherwise: prompts show it.
TEST(ExpectedUs, GrowsWithAPromptsLength) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    if (kernel.name != "pipelined" && !TakesE4m3(kernel)) continue;
    double before = 0;
    for (int seq = 256; seq <= 16384; seq *= 2) {
      const double us =
          ExpectedUs(kernel, {1, 16, 16, seq, seq, kernel.head_dim, true, kernel.dtype}, kGpu);
      EXPECT_GT(us, before) << seq;
      before = us;
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
