// SPDX-License-Identifier: Apache-2.0
// What is refused before a launch; no GPU needed.

#include "kernels/sdpa/launch/launch.h"

#include "gmock/gmock.h"
#include "kernels/sdpa/registry/variant.h"
#include "tests/status_matchers.h"

namespace warpledger::sdpa {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::Not;

const Problem kProblem = {1, 8, 8, 512, 512, 64, false};

// One that the instance was compiled for.
Problem ProblemOf(const KernelInstance& instance) {
  Problem problem = kProblem;
  problem.head_dim = instance.config.head_dim;
  problem.dtype = instance.config.dtype;
  problem.causal = instance.config.mask == Mask::kCausal;
  problem.embed_dim = instance.config.projected ? 512 : 0;
  return problem;
}

DeviceFacts Gpu(int max_smem_optin_bytes) {
  DeviceFacts device;
  device.name = "Test GPU";
  device.compute_major = 9;
  device.max_smem_optin_bytes = max_smem_optin_bytes;
  return device;
}

TEST(CheckLaunchable, AcceptsEveryInstanceOnHopper) {
  ASSERT_FALSE(AllInstances().empty());
  for (const KernelInstance* instance : AllInstances()) {
    EXPECT_EQ(CheckLaunchable(instance->config, ProblemOf(*instance), Gpu(227 * 1024)),
              absl::OkStatus());
  }
}

TEST(CheckLaunchable, RefusesWgmmaAndWhatNeedsMoreSharedMemoryOnAnAdaGpu) {
  DeviceFacts ada = Gpu(99 * 1024);
  ada.compute_major = 8;
  ada.compute_minor = 9;
  for (const KernelInstance* instance : AllInstances()) {
    const absl::Status status = CheckLaunchable(instance->config, ProblemOf(*instance), ada);
    const Family family = FamilyOf(instance->config);
    if (family == Family::kSmem || family == Family::kMma) {
      EXPECT_EQ(status.ok(), GeometryOf(instance->config).smem_bytes <= ada.max_smem_optin_bytes &&
                                 MinArch(instance->config) <= 89)
          << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("needs compute capability 9.0"));
    }
  }
}

TEST(MissingCode, NamesInstanceAndGpuAndHowToBuildIt) {
  DeviceFacts device = Gpu(99 * 1024);
  device.compute_major = 8;
  device.compute_minor = 6;
  const Config config = Specialise({.kv_tiling = 1}, 64, false);
  const absl::Status status = MissingCode(config, device);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  for (const std::string& part :
       {InstanceName(config), std::string("sm_86 (Test GPU)"), std::string("`ladder` and `mma`"),
        std::string("--preset all"), std::string("-DWARPLEDGER_CUDA_ARCHITECTURES=86-real")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(MissingCode, DoesNotSendAnyoneToAPresetThatLacksTheGpu) {
  DeviceFacts device = Gpu(99 * 1024);
  device.compute_major = 12;
  const std::string told(MissingCode(Specialise({.kv_tiling = 1}, 64, false), device).message());
  EXPECT_THAT(told, HasSubstr("-DWARPLEDGER_CUDA_ARCHITECTURES=120-real"));
  EXPECT_THAT(told, Not(HasSubstr("--preset")));
}

TEST(MissingCode, SaysSoWhereNoBuildWouldHaveIt) {
  DeviceFacts ada = Gpu(99 * 1024);
  ada.compute_major = 8;
  ada.compute_minor = 9;
  EXPECT_THAT(MissingCode(Specialise({.wgmma = 1}, 64, false), ada),
              StatusIs(_, HasSubstr("needs compute capability 9.0")));
}

TEST(CheckProblem, RefusesWhatNoProjectionTakes) {
  Problem problem = kProblem;
  problem.embed_dim = 512;
  EXPECT_TRUE(CheckProblem(problem).ok());
  for (const int embed_dim : {-64, 32, 100, 576}) {
    problem.embed_dim = embed_dim;
    EXPECT_EQ(CheckProblem(problem).code(), absl::StatusCode::kInvalidArgument) << embed_dim;
  }
  problem.embed_dim = 512;
  problem.seq_kv = 256;
  EXPECT_EQ(CheckProblem(problem).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckLaunchable, RefusesClustersOfMoreThanEightCtasAndOfGroupedHeads) {
  int clusters = 0;
  for (const KernelInstance* instance : AllInstances()) {
    if (!instance->config.projected || instance->config.fuse_projection != 2) continue;
    ++clusters;
    Problem problem = ProblemOf(*instance);
    problem.seq_q = problem.seq_kv = 513;
    EXPECT_EQ(CheckLaunchable(instance->config, problem, Gpu(227 * 1024)).code(),
              absl::StatusCode::kInvalidArgument);
    problem = ProblemOf(*instance);
    problem.heads_kv = 4;
    EXPECT_EQ(CheckLaunchable(instance->config, problem, Gpu(227 * 1024)).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_GE(clusters, 2);
}

TEST(CheckLaunchable, RefusesGroupsThatNoTileHolds) {
  int packed = 0;
  for (const KernelInstance* instance : AllInstances()) {
    if (!instance->config.wgmma_pack_heads) continue;
    ++packed;
    const int rows = GeometryOf(instance->config).tile_m;
    Problem problem = ProblemOf(*instance);
    problem.heads_kv = 1;
    problem.heads_q = rows;
    EXPECT_TRUE(CheckLaunchable(instance->config, problem, Gpu(227 * 1024)).ok());
    problem.heads_q = rows + 1;
    EXPECT_THAT(
        CheckLaunchable(instance->config, problem, Gpu(227 * 1024)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Try it without wgmma_pack_heads")));
  }
  EXPECT_GE(packed, 8);
}

TEST(CheckLaunchable, NamesTheSharedMemoryThatIsMissing) {
  const KernelInstance& last = *AllInstances().back();
  EXPECT_THAT(
      CheckLaunchable(last.config, ProblemOf(last), Gpu(GeometryOf(last.config).smem_bytes - 1)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Test GPU allows")));
}

TEST(CheckLaunchable, RefusesMoreCtasThanAGridHolds) {
  EXPECT_THAT(CheckLaunchable(Config{}, {65536, 65536, 1, 1, 1, 64, false}, Gpu(99 * 1024)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Split the batch")));
}

TEST(CheckLaunchable, RefusesAProblemOfAnotherHeadDimMaskOrDtype) {
  const Config compiled = Specialise({.wgmma = 1}, 128, true);
  Problem problem = kProblem;
  problem.head_dim = 128;
  problem.causal = true;
  EXPECT_TRUE(CheckLaunchable(compiled, problem, Gpu(227 * 1024)).ok());
  problem.causal = false;
  EXPECT_THAT(std::string(CheckLaunchable(compiled, problem, Gpu(227 * 1024)).message()),
              HasSubstr("compiled for another"));
  problem.causal = true;
  problem.dtype = Dtype::kBf16;
  EXPECT_THAT(std::string(CheckLaunchable(compiled, problem, Gpu(227 * 1024)).message()),
              HasSubstr("head_dim 128, causal, bf16"));
  problem.dtype = Dtype::kFp16;
  problem.head_dim = 64;
  EXPECT_EQ(CheckLaunchable(compiled, problem, Gpu(227 * 1024)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckProblem, RefusesHeadDimsHeadRatiosAndEmptySizes) {
  EXPECT_TRUE(CheckProblem(kProblem).ok());
  EXPECT_THAT(std::string(CheckProblem({1, 8, 8, 512, 512, 80, false}).message()),
              HasSubstr("head_dim 80"));
  EXPECT_THAT(std::string(CheckProblem({1, 8, 3, 512, 512, 64, false}).message()),
              HasSubstr("multiple"));
  EXPECT_THAT(std::string(CheckProblem({1, 8, 8, 0, 512, 64, false}).message()),
              HasSubstr("at least 1"));
}

TEST(FindInstance, KnowsWhatWasCompiledAndNothingElse) {
  for (const KernelInstance* instance : AllInstances()) {
    EXPECT_EQ(FindInstance(instance->config, ProblemOf(*instance)), instance);
  }
  Config unknown;
  unknown.kv_tiling = 7;
  EXPECT_EQ(FindInstance(unknown, kProblem), nullptr);
  Problem wide = kProblem;
  wide.head_dim = 32;
  EXPECT_EQ(FindInstance(Config{}, wide), nullptr);
}

}  // namespace
}  // namespace warpledger::sdpa
