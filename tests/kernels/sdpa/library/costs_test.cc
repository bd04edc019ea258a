// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/costs.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/library/fitted_costs.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

constexpr Gpu kGpu = {132};
constexpr Gpu kH100 = {132, 5120};

const LibraryKernel& KernelFor(std::string_view name, const Problem& problem) {
  return *std::find_if(
      std::begin(kLibraryKernels), std::end(kLibraryKernels), [&](const auto& any) {
        return any.name == name && any.head_dim == problem.head_dim && any.dtype == problem.dtype;
      });
}

double TermOf(std::string_view term, std::string_view kernel, const Problem& problem) {
  const CostTerms terms = CostTermsOf(KernelFor(kernel, problem), problem, kGpu);
  for (int i = 0; i < kCostTerms; ++i) {
    if (kCostTermNames[i] == term) return terms[i];
  }
  ADD_FAILURE() << term << " is no term";
  return 0;
}

TEST(LibraryKernels, AreLegalAndHaveCosts) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    for (const bool causal : {false, true}) {
      for (const Config& any : {kernel.config, BuiltForLibrary(kernel),
                                HasClusterForm(kernel)   ? ClusterForm(kernel)
                                : HasStridedForm(kernel) ? StridedForm(kernel)
                                                         : kernel.config}) {
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

TEST(LibraryKernels, ReadScalesWhereTheCallerHasThem) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    EXPECT_EQ(BuiltForLibrary(kernel).scale_strides, TakesE4m3(kernel)) << kernel.name;
    EXPECT_FALSE(kernel.config.scale_strides) << "a design's have the host's";
  }
}

// Two tiles of queries a head, of 8 and 4 tiles of 64 keys, for 66 pairs of CTAs: 48 pairs take the
// long ones, 18 two short ones each, and the 12 that are left meet 8 tiles on any pair. An equal
// share would be 8.7.
TEST(CostTermsOf, PlayTheQueueUnderTheMask) {
  EXPECT_DOUBLE_EQ(TermOf("chain", "pipelined_pairs", {3, 16, 8, 458, 458, 256, true}), 12);
}

// Eight tiles of queries of each of 17 heads, of one to eight tiles of keys: four CTAs of one tile
// are left for the 132 places, and follow others of one tile, before the longest end.
TEST(CostTermsOf, CountRoundsOfThePlaceThatEndsLast) {
  const Problem p = {1, 17, 17, 512, 512, 256, true};
  EXPECT_DOUBLE_EQ(TermOf("rounds", "split_wgmma", p), 1);
  EXPECT_DOUBLE_EQ(TermOf("chain", "split_wgmma", p), 8);
  Problem full = p;
  full.causal = false;
  EXPECT_DOUBLE_EQ(TermOf("rounds", "split_wgmma", full), 2);
}

// Small-problem kernels take heads by turns, and each head's tiles from the shortest on, so that
// the last one taken is the longest.
TEST(CostTermsOf, PlayHeadsByTurnsWhereAKernelTakesThemSo) {
  const Problem p = {1, 9, 9, 1408, 1408, 64, true};  // 22 tiles of queries, 396 CTAs: all at once
  EXPECT_DOUBLE_EQ(TermOf("chain", "resident", p), 6);
  Problem more = p;
  more.heads_q = more.heads_kv = 10;  // the tenth head's 44 CTAs follow those of one tile
  EXPECT_GT(TermOf("chain", "resident", more), 6);
  EXPECT_DOUBLE_EQ(TermOf("tail", "resident", p), 0);
  EXPECT_GT(TermOf("tail", "resident", more), 0);
}

TEST(CostTermsOf, JoinRowsOfHeadsThatShareATile) {
  const Problem p = {1, 8, 1, 2, 8192, 128, false};
  EXPECT_DOUBLE_EQ(TermOf("joined parts", "split_wgmma", p), std::sqrt(2 * 8 * 64))
      << "of 64 splits";
  EXPECT_DOUBLE_EQ(TermOf("joined parts", "pipelined", p), 0);
}

// Four groups of a CTA take 32 keys each at a time. Eleven CTAs share 51 tiles: five each, which
// two steps take, and the last has one.
TEST(CostTermsOf, CountTilesOfOneOfTheGroupsThatTakeThemBesideEachOther) {
  const Problem p = {3, 8, 8, 1, 32 * 51, 64, false};  // 24 tiles of queries on 264 places
  EXPECT_DOUBLE_EQ(TermOf("chain", "split_mma", p), 2);
  EXPECT_DOUBLE_EQ(TermOf("joined parts", "split_mma", p), std::sqrt(11));
  Problem fewer = p;
  fewer.seq_kv = 32 * 45;  // 5 tiles a CTA leave the last two none
  EXPECT_DOUBLE_EQ(TermOf("joined parts", "split_mma", fewer), std::sqrt(9));
}

// At head_dim 64 two CTAs of a tile each share an SM, as long as there are more than SMs.
TEST(CostTermsOf, CountChainsThatShareAnSm) {
  const auto shared = [](int heads) {
    return TermOf("shared chain", "split_wgmma", {1, heads, heads, 64, 640, 64, false});
  };
  EXPECT_DOUBLE_EQ(shared(100), 10);
  EXPECT_DOUBLE_EQ(shared(200), 20);
  EXPECT_DOUBLE_EQ(shared(264), 20);
  EXPECT_DOUBLE_EQ(shared(300), 20 + 10);
  EXPECT_DOUBLE_EQ(shared(500), 20 + 20);
}

TEST(CostTerms, CountHalfATileWhereAKernelBeginsWithOne) {
  const auto chain = [](std::string_view kernel, int keys) {
    return TermOf("chain", kernel, {1, 1, 1, keys, keys, 128, true});
  };
  EXPECT_EQ(chain("pipelined", 192), 1.5);
  EXPECT_EQ(chain("pipelined", 193), 2);
  EXPECT_EQ(chain("pipelined_short", 192), 3);
  EXPECT_EQ(chain("pipelined_short", 193), 4);
  EXPECT_EQ(TermOf("first tiles", "pipelined", {1, 1, 1, 192, 192, 128, true}), 2);
  EXPECT_EQ(TermOf("chain", "pipelined", {1, 1, 1, 192, 192, 128, false}), 2) << "a full mask";
}

TEST(CostTerms, CountTripsOfTheCtaThatJoins) {
  const auto trips = [](std::string_view kernel, int queries) {
    return TermOf("join trips", kernel, {1, 8, 8, queries, 8192, 128, false});
  };
  EXPECT_EQ(trips("split_mma", 4), 1);
  EXPECT_EQ(trips("split_mma", 16), 4);
  EXPECT_EQ(trips("split_wgmma", 4), 0) << "a kernel joins";
}

TEST(ExpectedUs, OfPairsIsMoreThanTheirCostsInShortCalls) {
  const auto over_costs = [](int batch) {
    const Problem p = {batch, 16, 16, 4096, 4096, 128, false};
    const LibraryKernel& pairs = KernelFor("pipelined_pairs", p);
    return ExpectedUs(pairs, p, kGpu) / UsByCosts(pairs, p, kGpu);
  };
  EXPECT_GT(over_costs(1), 1.02);
  EXPECT_LT(over_costs(4), 1.01);
}

TEST(ExpectedUs, IsMoreThanTilesAndDramWhereBothTakeAsLong) {
  // From one query of each head, where DRAM takes longer, to many.
  for (const int queries : {1, 16, 64, 256, 1024}) {
    const Problem p = {64, 16, 16, queries, 4096, 128, false};
    const LibraryKernel& kernel = KernelFor("pipelined", p);
    const CostTerms terms = CostTermsOf(kernel, p, kGpu);
    const FittedCosts& fitted =
        *std::find_if(std::begin(kFittedCosts), std::end(kFittedCosts),
                      [](const auto& it) { return it.name == "pipelined" && it.head_dim == 128; });
    double open = 0;
    double tiles = 0;
    for (int i = 0; i < kDramTerm; ++i) {
      (i < kFirstTileTerm ? open : tiles) += fitted.us[i] * terms[i];
    }
    const double dram = fitted.us[kDramTerm] * terms[kDramTerm];
    const double both = UsByCosts(kernel, p, kGpu) - open;
    EXPECT_GE(both, std::max(tiles, dram)) << queries;
    EXPECT_LE(both, 1.0906 * std::max(tiles, dram)) << queries << ": 2^(1/8)";
    EXPECT_NEAR(std::pow(both, 8) / (std::pow(tiles, 8) + std::pow(dram, 8)), 1, 1e-9) << queries;
  }
}

// However many rounds there are, and none is left out.
TEST(CostTermsOf, CountRoundsOfEqualTilesWithoutAMask) {
  EXPECT_DOUBLE_EQ(TermOf("chain", "pipelined", {1, 513, 513, 128, 128, 128, false}), 4);
  EXPECT_DOUBLE_EQ(TermOf("chain", "pipelined", {1, 132 * 17 + 1, 1, 128, 128, 128, false}), 18);
}

TEST(CostTermsOf, CountBytesOfE4m3) {
  const Problem p = {1, 8, 8, 1000, 1000, 128, false};
  constexpr double kMegabytes = 8 * 1000 * 128 / 1e6;  // of one byte an element
  EXPECT_DOUBLE_EQ(TermOf("MB", "pipelined", p), 8 * kMegabytes);
  EXPECT_DOUBLE_EQ(TermOf("MB", "pipelined_e4m3", p), 5 * kMegabytes) << "O has two bytes";
  EXPECT_DOUBLE_EQ(TermOf("MB", "pipelined_e4m3_output", p), 4 * kMegabytes);
}

// O of two bytes takes longer than O of one, by what nothing hides.
TEST(ExpectedUs, OfE4m3GoesByTheKernelThatWritesIt) {
  for (const int head_dim : {64, 128, 256}) {
    const Problem p = {32, 16, 16, 512, 512, head_dim, false};
    const double output = UsByCosts(KernelFor("pipelined_e4m3_output", p), p, kGpu);
    const double fp16 = UsByCosts(KernelFor("pipelined_e4m3", p), p, kGpu);
    EXPECT_GT(fp16, output) << head_dim;
    EXPECT_LT(fp16, 1.15 * output) << head_dim;
  }
}

TEST(CostTermsOf, CountPairsAsLongAsTheLongerOfTwo) {
  // Seven tiles of queries over 132 heads: four pairs on 66 places, each of seven tiles of keys.
  const Problem odd = {1, 132, 132, 896, 896, 128, false};
  EXPECT_EQ(TermOf("work", "pipelined", odd), 7 * 7);
  EXPECT_EQ(TermOf("work", "pipelined_pairs", odd), 2 * 4 * 7);
  EXPECT_EQ(TermOf("rounds", "pipelined", odd), 7);
  EXPECT_EQ(TermOf("rounds", "pipelined_pairs", odd), 8);
  // Under the mask tiles of 1 and 2, 3 and 4.
  const Problem causal = {1, 132, 132, 512, 512, 128, true};
  EXPECT_EQ(TermOf("work", "pipelined", causal), 1 + 2 + 3 + 4);
  EXPECT_EQ(TermOf("work", "pipelined_pairs", causal), 2 * 2 + 2 * 4);
}

TEST(CostTermsOf, CountAllTilesOfAHeadWhoseKeysStay) {
  const Problem kept = {1, 132, 132, 512, 512, 64, true};
  EXPECT_EQ(TermOf("chain", "pipelined_two_warpgroups", kept), 1 + 2 + 3 + 4);
  EXPECT_EQ(TermOf("rounds", "pipelined_two_warpgroups", kept), 4);
  EXPECT_EQ(TermOf("chain", "pipelined_two_warpgroups_reread", kept), 1 + 2 + 3 + 4);
}

TEST(CostTermsOf, CountNoTilesOfQueriesThatSeeNoKey) {
  constexpr int kMost = 1 << 30;
  const Problem most = {1, 132, 132, kMost, 512, 64, true};
  EXPECT_EQ(TermOf("chain", "pipelined_two_warpgroups", most), 1 + 2 + 3 + 4);
  const Problem full = {1, 132, 132, kMost, 512, 64, false};
  EXPECT_EQ(TermOf("chain", "pipelined_two_warpgroups", full), 4.0 * kMost / 128);
}

TEST(CostTermsOf, CountTwoSmallTilesToAnSmAtHeadDim64) {
  const Problem p = {1, 264, 264, 64, 640, 64, false};
  EXPECT_EQ(TermOf("chain", "split_wgmma", p), 10);
  Problem wider = p;
  wider.head_dim = 128;
  EXPECT_EQ(TermOf("chain", "split_wgmma", wider), 20);
}

TEST(ExpectedUs, IsAtLeastWhatDramTakes) {
  // 1,074 MB of K and V for one query each.
  const Problem decode = {64, 8, 8, 1, 4096, 128, false};
  const LibraryKernel& kernel = KernelFor("split_wgmma", decode);
  EXPECT_GT(ExpectedUs(kernel, decode, kGpu), 1074 / 4.8);
  EXPECT_LT(ExpectedUs(kernel, decode, kGpu), 1074 / 3.8);
  EXPECT_GT(ExpectedUs(kernel, decode, kH100), 1074 / 3.35);
}

std::string_view FastestOf(std::vector<std::string_view> names, const Problem& problem) {
  return *std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return ExpectedUs(KernelFor(a, problem), problem, kGpu) <
           ExpectedUs(KernelFor(b, problem), problem, kGpu);
  });
}

// As records of both kinds say: reports/decisions/0037-one-call.md and 0049-forms-of-a-kernel.md.
TEST(ExpectedUs, OfAFormIsLessWhereItIsTheFasterOne) {
  const auto form = [](const Problem& problem) {
    return problem.head_dim == 256 ? FastestOf({"pipelined", "pipelined_pairs"}, problem)
                                   : FastestOf({"pipelined", "pipelined_pairs", "pipelined_short",
                                                "pipelined_short_pairs"},
                                               problem);
  };
  const auto of = [](int keys, int head_dim, bool causal) {
    return Problem{16384 / keys, 2048 / head_dim, 2048 / head_dim, keys, keys, head_dim, causal};
  };
  for (const int head_dim : {128, 256}) {
    for (const bool causal : {false, true}) {
      EXPECT_EQ(form(of(16384, head_dim, causal)), "pipelined_pairs") << head_dim << causal;
    }
  }
  EXPECT_EQ(form(of(2048, 128, true)), "pipelined");
  EXPECT_EQ(form(of(1024, 256, true)), "pipelined") << "by 1.5%; with 2048 keys by 0.3%";
  EXPECT_EQ(form(of(512, 128, true)), "pipelined_short");
  // Seven tiles of queries a head: one in eight CTAs of pairs would have none.
  EXPECT_EQ(form({8, 48, 12, 896, 896, 128, false}), "pipelined");
  EXPECT_EQ(form({25, 16, 1, 256, 256, 128, true}), "pipelined_short");
}

TEST(ExpectedUs, IsLessForKAndVReadAnewWhereTheyAreNotKept) {
  const auto anew = [](const Problem& problem) {
    return ExpectedUs(KernelFor("pipelined_two_warpgroups_reread", problem), problem, kGpu) <
           ExpectedUs(KernelFor("pipelined_two_warpgroups", problem), problem, kGpu);
  };
  for (const bool causal : {false, true}) {
    EXPECT_FALSE(anew({32, 32, 32, 512, 512, 64, causal}));
    EXPECT_TRUE(anew({16, 32, 32, 1024, 1024, 64, causal})) << "too many keys";
    EXPECT_TRUE(anew({1, 8, 8, 512, 512, 64, causal})) << "too few heads";
  }
}

TEST(ExpectedUs, IsLessForE4m3sOutputByPlainStores) {
  const Problem problem = {2, 8, 8, 1000, 1000, 256, false};
  const LibraryKernel& kernel = KernelFor("pipelined_e4m3_contiguous", problem);
  EXPECT_LT(ExpectedUs(kernel, problem, kGpu),
            ExpectedUs(KernelFor("pipelined_e4m3", problem), problem, kGpu));
}

TEST(TakesClusterForm, WhereHalfOfTheSmsFillSmallClusters) {
  const auto takes = [](const Problem& problem, const Gpu& gpu = kH100) {
    const auto* const kernel =
        std::find_if(std::begin(kLibraryKernels), std::end(kLibraryKernels), [&](const auto& any) {
          return any.name == "split_wgmma" && any.head_dim == problem.head_dim &&
                 any.dtype == problem.dtype;
        });
    return TakesClusterForm(*kernel, problem, gpu);
  };
  EXPECT_TRUE(takes({1, 64, 8, 8, 8192, 128, false}));
  EXPECT_TRUE(takes({2, 64, 8, 2, 8192, 128, true}));
  EXPECT_FALSE(takes({1, 64, 8, 16, 8192, 128, false})) << "two tiles of queries read each key";
  EXPECT_FALSE(takes({1, 32, 4, 4, 8192, 128, false})) << "16 CTAs a head";
  EXPECT_FALSE(takes({1, 96, 12, 2, 8192, 128, false})) << "60 of 66 pairs of SMs";
  EXPECT_FALSE(takes({1, 64, 8, 8, 256, 128, false})) << "four tiles of keys";
  EXPECT_FALSE(takes({64, 64, 8, 1, 8192, 128, false}));
  EXPECT_FALSE(takes({1, 64, 8, 8, 8192, 64, false}));
  EXPECT_FALSE(takes({1, 64, 8, 8, 8192, 128, false}, kGpu)) << "an H200";
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
