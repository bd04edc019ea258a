// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/choice.h"

#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/launch/launch.h"
#include "kernels/sdpa/library/costs.h"
#include "kernels/sdpa/problem/problem_name.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Gpu kGpu = {132};

TensorLayouts Contiguous(const Problem& p) { return ContiguousLayouts(p, p.head_dim); }

// (batch, seq, heads, head_dim).
TensorStrides RowsOutside(int heads, int seq, int head_dim) {
  const int64_t row = int64_t{heads} * head_dim;
  return {seq * row, head_dim, row};
}
TensorLayouts AllRowsOutside(const Problem& p) {
  const TensorStrides queries = RowsOutside(p.heads_q, p.seq_q, p.head_dim);
  const TensorStrides keys = RowsOutside(p.heads_kv, p.seq_kv, p.head_dim);
  return {queries, keys, keys, queries};
}

const LibraryKernel& KernelOf(std::string_view name, int head_dim) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    if (kernel.name == name && kernel.head_dim == head_dim) return kernel;
  }
  ADD_FAILURE() << name;
  return kLibraryKernels[0];
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
    const Choice choice = ChooseKernel(problem, Contiguous(problem), kGpu);
    ASSERT_NE(choice.kernel, nullptr) << ProblemName(problem);
    const Config form = TakesClusterForm(*choice.kernel, problem, kGpu)
                            ? ClusterForm(*choice.kernel)
                            : BuiltForLibrary(*choice.kernel);
    const Config config = Specialise(form, problem.head_dim, problem.causal, problem.dtype);
    EXPECT_EQ(CheckLaunchable(config, problem, device), absl::OkStatus());
    EXPECT_EQ(choice.launches, 1);
    EXPECT_GT(choice.us, 0);
  }
}

TEST(ChooseKernel, HasNoneForAnotherHeadDim) {
  const Problem problem = {1, 8, 8, 512, 512, 80, false};
  EXPECT_EQ(ChooseKernel(problem, Contiguous(problem), kGpu).kernel, nullptr);
  EXPECT_EQ(Explain(problem, Contiguous(problem), kGpu), "");
}

// A batch whose stride is heads times the head stride is more heads; else it is a launch, or a
// sequence of the packed ones' kernel where its stride is so many rows.
TEST(ChooseKernel, LaunchesOnceForEachBatchWhoseStrideDoesNotFold) {
  Problem problem = {1, 8, 8, 2048, 2048, 64, true};
  EXPECT_EQ(ChooseKernel(problem, AllRowsOutside(problem), kGpu).kernel->name,
            "pipelined_two_warpgroups_reread");
  problem.batch = 3;
  const Choice packed = ChooseKernel(problem, AllRowsOutside(problem), kGpu);
  ASSERT_NE(packed.kernel, nullptr);
  EXPECT_EQ(packed.kernel->name, "pipelined_varlen");
  EXPECT_EQ(packed.launches, 1);
  // Batches inside of rows, with a head of another's between.
  TensorLayouts layouts;
  for (TensorStrides* strides : {&layouts.q, &layouts.k, &layouts.v, &layouts.o}) {
    *strides = {9 * 64, 64, 3 * 9 * 64};
  }
  const Choice choice = ChooseKernel(problem, layouts, kGpu);
  ASSERT_NE(choice.kernel, nullptr);
  EXPECT_EQ(choice.launches, 3);
  Problem one = problem;
  one.batch = 1;
  EXPECT_EQ(choice.us, 3 * ChooseKernel(one, layouts, kGpu).us);
  const std::string said = Explain(problem, layouts, kGpu);
  EXPECT_THAT(said, HasSubstr("in 3 launches, for the batch stride of q is not its heads times its "
                              "head stride"));
  EXPECT_THAT(said, HasSubstr("for the batch stride of q is no multiple of its row stride"));
}

TEST(ChooseKernel, TakesPackedSequencesInOneLaunchOfTheirKernel) {
  const Problem problem = {64, 16, 4, 2000, 2000, 128, true, Dtype::kBf16};
  TensorLayouts layouts;
  layouts.q = layouts.o = {0, 128, 16 * 128};
  layouts.k = layouts.v = {0, 128, 4 * 128};
  layouts.total_q = layouts.total_kv = 64 * 1000;
  const Choice choice = ChooseKernel(problem, layouts, kGpu);
  ASSERT_NE(choice.kernel, nullptr);
  EXPECT_EQ(choice.kernel->name, "pipelined_varlen");
  EXPECT_EQ(choice.launches, 1);
  Problem average = problem;
  average.seq_q = average.seq_kv = 1000;
  EXPECT_EQ(choice.us, ExpectedUs(*choice.kernel, average, kGpu));
  EXPECT_THAT(Explain(problem, layouts, kGpu),
              HasSubstr("pipelined: not supported: it knows one length for all sequences"));
}

TEST(ChooseKernel, TakesTheFirstRowsOfACacheInOneLaunch) {
  const Problem problem = {4, 32, 8, 1, 1000, 128, false};
  TensorLayouts layouts = Contiguous(problem);
  layouts.k = layouts.v = ContiguousStrides(8, 4096, 128);
  const Choice choice = ChooseKernel(problem, layouts, kGpu);
  ASSERT_NE(choice.kernel, nullptr);
  EXPECT_EQ(choice.launches, 1);
  EXPECT_EQ(choice.kernel->name, "split_mma");
}

// Scales alone say that Q, K and V are E4M3; the problem's dtype is O's.
TEST(ChooseKernel, TakesTheKernelOfE4m3WhereThereAreScales) {
  const Problem problem = {2, 32, 8, 1000, 1000, 128, true};
  TensorLayouts layouts = Contiguous(problem);
  EXPECT_FALSE(TakesE4m3(*ChooseKernel(problem, layouts, kGpu).kernel));
  EXPECT_THAT(Explain(problem, layouts, kGpu), Not(HasSubstr("e4m3")));
  layouts.scales = ScaleStrides{.q_head = 1, .kv_head = 1};
  const Choice by_head = ChooseKernel(problem, layouts, kGpu);
  ASSERT_NE(by_head.kernel, nullptr);
  EXPECT_EQ(by_head.kernel->name, "pipelined_e4m3");
  EXPECT_EQ(by_head.launches, 1);
  EXPECT_THAT(Explain(problem, layouts, kGpu), MatchesRegex("pipelined_e4m3: [0-9.]+ us"));
  layouts.scales = ScaleStrides{};
  EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel, by_head.kernel);
  layouts.e4m3_output = true;
  EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel->name, "pipelined_e4m3_output");
  layouts.e4m3_output = false;
  layouts.scales = ScaleStrides{.kv_head = 8, .per_block = true};
  EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel->name, "pipelined_e4m3_blocks");
}

TEST(ChooseKernel, HasOneOfE4m3ForEachHeadDimAndLayoutAndNoneForAnotherOutput) {
  for (const int head_dim : kHeadDims) {
    Problem problem = {1, 8, 8, 512, 512, head_dim, false};
    TensorLayouts layouts = Contiguous(problem);
    layouts.scales = ScaleStrides{};
    const bool has_form = head_dim == 256;  // where O is contiguous
    EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel,
              &KernelOf(has_form ? "pipelined_e4m3_contiguous" : "pipelined_e4m3", head_dim));
    TensorLayouts outside = AllRowsOutside(problem);
    outside.scales = ScaleStrides{};
    EXPECT_EQ(ChooseKernel(problem, outside, kGpu).kernel, &KernelOf("pipelined_e4m3", head_dim));
    // Whatever O's strides are: it stores row by row.
    outside.e4m3_output = true;
    outside.o.head += 16;
    EXPECT_EQ(ChooseKernel(problem, outside, kGpu).kernel,
              &KernelOf("pipelined_e4m3_output", head_dim));
    layouts.scales->per_block = true;
    EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel,
              &KernelOf("pipelined_e4m3_blocks", head_dim));
    problem.dtype = Dtype::kBf16;
    EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel, nullptr);
    EXPECT_EQ(Explain(problem, layouts, kGpu), "");
  }
}

// Where a head has several scales, a block of keys is one or more of the kernel's tiles.
TEST(LibraryKernels, HaveTilesOfKeysThatDivideBlocks) {
  for (const LibraryKernel& kernel : kLibraryKernels) {
    if (!kernel.config.wgmma_fp8_block_scale) continue;
    const int tile_n = GeometryOf(Specialise(kernel.config, kernel.head_dim, true)).tile_n;
    EXPECT_EQ(KvStorageOf(kernel.config).scheme.block_keys, 128);
    EXPECT_EQ(128 % tile_n, 0) << kernel.head_dim;
  }
}

// It numbers heads over the batch as all but the packed sequences' kernel do, and there is none of
// these in E4M3.
TEST(ChooseKernel, LaunchesE4m3OnceForEachBatchOfRowsOutside) {
  Problem problem = {3, 8, 2, 512, 512, 128, true};
  TensorLayouts layouts = AllRowsOutside(problem);
  layouts.scales = ScaleStrides{.q_head = 1, .kv_head = 1};
  const Choice choice = ChooseKernel(problem, layouts, kGpu);
  ASSERT_NE(choice.kernel, nullptr);
  EXPECT_EQ(choice.launches, 3);
  EXPECT_THAT(Explain(problem, layouts, kGpu),
              HasSubstr("in 3 launches, for the batch stride of q is not its heads times its head "
                        "stride"));
  problem.batch = 1;
  EXPECT_EQ(ChooseKernel(problem, AllRowsOutside(problem), kGpu).launches, 1);
  // Rows that see no key are stored without TMA, so that O must be contiguous.
  problem.seq_kv = 100;
  layouts = AllRowsOutside(problem);
  layouts.scales = ScaleStrides{};
  EXPECT_EQ(ChooseKernel(problem, layouts, kGpu).kernel, nullptr);
  EXPECT_THAT(Explain(problem, layouts, kGpu),
              HasSubstr("pipelined_e4m3: not supported: it stores contiguous tensors alone"));
}

TEST(WhyNot, CountsNoStrideOfWhatIsThereOnce) {
  const Problem problem = {4, 8, 1, 1, 1, 64, false};
  TensorLayouts layouts = AllRowsOutside(problem);
  EXPECT_EQ(WhyNot(KernelOf("split_mma", 64), problem, layouts, kGpu), "");
  layouts.k.head = layouts.k.row = 8;
  EXPECT_EQ(WhyNot(KernelOf("split_mma", 64), problem, layouts, kGpu), "");
  EXPECT_FALSE(TakesStridedForm(KernelOf("split_mma", 64), problem, layouts));
  layouts.k.batch = 128;
  EXPECT_TRUE(TakesStridedForm(KernelOf("split_mma", 64), problem, layouts));
  EXPECT_FALSE(TakesStridedForm(KernelOf("split_wgmma", 64), problem, layouts));
  // One head of K: its batch stride is any.
  EXPECT_EQ(WhyNot(KernelOf("split_wgmma", 64), problem, layouts, kGpu), "");
}

TEST(WhyNot, KnowsWhichKernelsStoreStrides) {
  const Problem problem = {1, 8, 8, 512, 512, 64, true};
  TensorLayouts layouts = Contiguous(problem);
  layouts.o = RowsOutside(8, 512, 64);
  EXPECT_EQ(WhyNot(KernelOf("pipelined", 64), problem, layouts, kGpu), "");
  EXPECT_EQ(WhyNot(KernelOf("split_mma", 64), problem, layouts, kGpu), "");
  for (const auto* name : {"resident", "split_wgmma"}) {
    EXPECT_EQ(WhyNot(KernelOf(name, 64), problem, layouts, kGpu),
              "it stores contiguous tensors alone, and o has other strides");
  }
  // Tiles of rows that see no key leave by another way.
  const Problem unseen = {1, 64, 64, 2048, 400, 64, true};
  EXPECT_NE(WhyNot(KernelOf("pipelined", 64), unseen, layouts, kGpu), "");
  // So does O of head_dim 256. The kernel of packed sequences stores both.
  const Problem wide = {1, 8, 8, 512, 512, 256, true};
  EXPECT_NE(WhyNot(KernelOf("pipelined", 256), wide, AllRowsOutside(wide), kGpu), "");
  EXPECT_EQ(ChooseKernel(wide, AllRowsOutside(wide), kGpu).kernel->name, "pipelined_varlen");
  layouts = AllRowsOutside(unseen);
  EXPECT_EQ(ChooseKernel(unseen, layouts, kGpu).kernel->name, "pipelined_varlen");
}

// Decoding against a cache of (batch, seq, heads, head_dim): strides of batches fold into no
// strides of heads, so that the wgmma family would take a launch for each batch.
TEST(ChooseKernel, DecodesBatchesOfRowsOutsideInOneLaunch) {
  for (const int head_dim : {64, 128}) {
    const Problem problem = {16, 32, 8, 1, 4096, head_dim, false};
    const Choice choice = ChooseKernel(problem, AllRowsOutside(problem), kGpu);
    EXPECT_EQ(choice.kernel->name, "split_mma");
    EXPECT_EQ(choice.launches, 1);
    EXPECT_GT(choice.us, ExpectedUs(*choice.kernel, problem, kGpu)) << "its form takes longer";
  }
}

TEST(WhyNot, CountsRowsOfBatchesForTheKernelOfPackedSequences) {
  const LibraryKernel& kernel = KernelOf("pipelined_varlen", 64);
  const Problem problem = {4, 8, 2, 100, 200, 64, true};
  TensorLayouts layouts = AllRowsOutside(problem);
  EXPECT_EQ(WhyNot(kernel, problem, layouts, kGpu), "");
  layouts.v.batch += layouts.v.row;
  EXPECT_EQ(WhyNot(kernel, problem, layouts, kGpu),
            "k and v have other strides of batches, in rows");
  layouts.k.batch += layouts.k.row;
  EXPECT_EQ(WhyNot(kernel, problem, layouts, kGpu), "");
  layouts.o.batch += 8;
  EXPECT_EQ(WhyNot(kernel, problem, layouts, kGpu),
            "the batch stride of o is no multiple of its row stride");
}

// --- GPUs without wgmma ------------------------------------------------------------

constexpr Gpu kA100 = {108, 5120, false, 163 << 10};
constexpr Gpu kL4 = {58, 192, false, 99 << 10};

Config Built(const LibraryKernel& kernel) {
  return Specialise(BuiltForLibrary(kernel), kernel.head_dim, true, kernel.dtype);
}

TEST(MmaKernels, AreLegalAndForComputeCapability80) {
  EXPECT_LE(std::size(kMmaKernels), 20U);
  for (const LibraryKernel& kernel : kMmaKernels) {
    EXPECT_FALSE(static_cast<bool>(WhyInvalid(Built(kernel)))) << kernel.name;
    EXPECT_EQ(FamilyOf(kernel.config), Family::kMma);
    EXPECT_EQ(MinArch(kernel.config), 0);
    EXPECT_TRUE(kernel.config.strided);
    EXPECT_LE(GeometryOf(Built(kernel)).smem_bytes, kA100.smem_bytes);
  }
}

TEST(ChooseKernel, WithoutWgmmaHasOneForEachProblem) {
  std::vector<Problem> problems;
  for (const NamedShape& shape : kShapes) {
    if (shape.problem.embed_dim == 0) problems.push_back(shape.problem);
  }
  for (const int head_dim : kHeadDims) {
    problems.push_back({1, 64, 1, 1, 1 << 20, head_dim, false, Dtype::kBf16});
    problems.push_back({1, 4096, 1, 1, 64, head_dim, true});
    problems.push_back({1, 1, 1, 1 << 20, 1, head_dim, true});
  }
  for (const Gpu& gpu : {kA100, kL4}) {
    for (const Problem& problem : problems) {
      for (const TensorLayouts& layouts : {Contiguous(problem), AllRowsOutside(problem)}) {
        const Choice choice = ChooseKernel(problem, layouts, gpu);
        ASSERT_NE(choice.kernel, nullptr) << ProblemName(problem);
        EXPECT_LE(GeometryOf(Built(*choice.kernel)).smem_bytes, gpu.smem_bytes);
        EXPECT_EQ(choice.launches, 1);
        EXPECT_EQ(choice.us, 0) << "nobody measured it";
        EXPECT_GT(choice.rank, 0);
        EXPECT_FALSE(choice.kernel->config.varlen);
      }
      TensorLayouts packed = AllRowsOutside(problem);
      packed.total_q = packed.total_kv = 1000;
      const Choice choice = ChooseKernel(problem, packed, gpu);
      ASSERT_NE(choice.kernel, nullptr) << ProblemName(problem);
      EXPECT_TRUE(choice.kernel->config.varlen);
    }
  }
}

TEST(ChooseKernel, WithoutWgmmaSharesKeysOfFewRows) {
  for (const int head_dim : {64, 128}) {
    const auto chosen = [&](const Problem& problem) {
      return ChooseKernel(problem, Contiguous(problem), kA100).kernel->name;
    };
    EXPECT_EQ(chosen({1, 32, 8, 1, 8192, head_dim, false}), "split_mma");
    EXPECT_EQ(chosen({16, 32, 8, 1, 4096, head_dim, false}), "split_mma");
    EXPECT_EQ(chosen({4, 16, 16, 2048, 2048, head_dim, true}), "tiled_mma");
    EXPECT_EQ(chosen({32, 16, 16, 512, 512, head_dim, false}), "tiled_mma");
  }
}

// Two stages of keys need more than 99 KB at head_dim 256.
TEST(ChooseKernel, WithoutWgmmaGoesByTheSharedMemoryOfACta) {
  const Problem problem = {1, 8, 8, 512, 512, 256, true};
  EXPECT_EQ(ChooseKernel(problem, Contiguous(problem), kA100).kernel->name, "shared_mma");
  EXPECT_EQ(ChooseKernel(problem, Contiguous(problem), kL4).kernel->name, "shared_mma_one_tile");
  EXPECT_THAT(Explain(problem, Contiguous(problem), kL4),
              MatchesRegex("shared_mma_one_tile: [0-9]+ steps; shared_mma: not supported: it needs "
                           "161 KB of shared memory, and a CTA has 99 on this GPU; "
                           "tiled_mma_varlen: not supported: it needs 160 KB of shared memory, and "
                           "a CTA has 99 on this GPU; tiled_mma_varlen_one_tile: not supported: it "
                           "is for packed sequences alone"));
}

TEST(ChooseKernel, WithoutWgmmaHasNoneInE4m3) {
  const Problem problem = {1, 8, 8, 512, 512, 128, true};
  TensorLayouts layouts = Contiguous(problem);
  layouts.scales = ScaleStrides{};
  EXPECT_EQ(ChooseKernel(problem, layouts, kA100).kernel, nullptr);
  EXPECT_EQ(Explain(problem, layouts, kA100), "");
}

}  // namespace
}  // namespace warpledger::sdpa
