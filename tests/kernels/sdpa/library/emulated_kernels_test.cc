// SPDX-License-Identifier: Apache-2.0
// The library's kernels for WARPLEDGER_HEAD_DIM, on the CPU: tensor maps, schedules, the ring of
// tiles, products by their descriptors, the way out of O.

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/mma/forward.cuh"
#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/resident/forward.cuh"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/wgmma/forward.cuh"
#include "tests/emulation/cuda_on_cpu.h"
#include "tests/kernels/sdpa/emulated/emulated_kernel.h"

namespace warpledger::sdpa {

unsigned char raw_smem[1];  // what kernels call their CTA's shared memory

namespace {

template <Config kConfig>
void Body(const void* params) {
  constexpr Family kFamily = FamilyOf(kConfig);
  if constexpr (kFamily == Family::kMma) {
    constexpr MmaShape kShape = MmaShapeOf(kConfig);
    MmaForward<kShape>(*static_cast<const MmaParamsOf<kShape>*>(params),
                       emulation::current->cta->smem);
  } else if constexpr (kFamily == Family::kResident) {
    ResidentForward<ResidentShapeOf(kConfig)>(*static_cast<const WgmmaParams*>(params));
  } else {
    constexpr WgmmaShape kShape = WgmmaShapeOf(kConfig);
    WgmmaForward<kShape>(*static_cast<const WgmmaParamsOf<kShape>*>(params));
  }
}
template <Config kConfig>
constexpr EmulatedKernel kOnCpu = {kConfig, &Body<kConfig>};

template <bool kCausal>
constexpr Config Specialised(const LibraryKernel& kernel, const Config& config) {
  return Specialise(config, kernel.head_dim, kCausal, kernel.dtype);
}

// With a mask or without. Both dtypes have one kernel's code, and so have both kinds of scales, so
// that each has one of the masks.
template <const auto& kKernels, size_t kIndex>
void TestKernel() {
  static constexpr LibraryKernel kKernel = kKernels[kIndex];
  if constexpr (kKernel.head_dim == WARPLEDGER_HEAD_DIM) {
    constexpr bool kCausal = kKernel.dtype == Dtype::kFp16 && !kKernel.config.wgmma_fp8_block_scale;
    constexpr EmulatedKernel kEmulated =
        kOnCpu<Specialised<kCausal>(kKernel, BuiltForLibrary(kKernel))>;
    SCOPED_TRACE(std::string(kKernel.name) + (kKernel.dtype == Dtype::kBf16 ? ", bf16" : ""));
    // With own tiles, keys for so many tiles that the ring comes round while some are let go.
    const int keys = kKernel.config.wgmma_own_tiles ? 900 : 333;
    const int batch = kKernel.config.strided ? 2 : 1;
    Problem problem = {batch, 2, 1, 333, keys, kKernel.head_dim, kCausal, kKernel.dtype};
    if constexpr (kKernel.config.varlen) {
      EXPECT_EQ(WhyWrongPacked(kEmulated), "");
    } else if constexpr (kKernel.config.wgmma_split_kv || kKernel.config.mma_split_kv) {
      problem = {batch, 6, 2, 3, 401, kKernel.head_dim, kCausal, kKernel.dtype};
      EXPECT_EQ(WhyWrong(kEmulated, problem, InputKind::kNormal, LaunchedBy::kLibrary), "");
      if constexpr (HasStridedForm(kKernel)) {
        constexpr EmulatedKernel kStrided =
            kOnCpu<Specialised<kCausal>(kKernel, StridedForm(kKernel))>;
        problem.batch = 2;
        EXPECT_EQ(WhyWrong(kStrided, problem, InputKind::kNormal, LaunchedBy::kLibrary), "");
      }
      if constexpr (HasClusterForm(kKernel)) {
        constexpr EmulatedKernel kCluster =
            kOnCpu<Specialised<kCausal>(kKernel, ClusterForm(kKernel))>;
        EXPECT_EQ(WhyWrong(kCluster, problem, InputKind::kNormal, LaunchedBy::kLibrary), "");
      }
    } else {
      EXPECT_EQ(WhyWrong(kEmulated, problem, InputKind::kNormal, LaunchedBy::kLibrary), "");
      for (const auto& [rows, keys] : {std::pair{65, 200}, {200, 65}}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(keys));
        problem.seq_q = rows;
        problem.seq_kv = keys;
        EXPECT_EQ(WhyWrong(kEmulated, problem, InputKind::kOutliers, LaunchedBy::kLibrary), "");
      }
    }
  }
}

template <const auto& kKernels>
void TestKernels() {
  [&]<size_t... kIndices>(std::index_sequence<kIndices...>) {
    (TestKernel<kKernels, kIndices>(), ...);
  }
  (std::make_index_sequence<std::size(kKernels)>());
}

TEST(EmulatedKernels, OfTheLibraryAgreeWithTheReference) { TestKernels<kLibraryKernels>(); }
TEST(EmulatedKernels, OfTheLibraryWithoutWgmmaAgreeWithTheReference) { TestKernels<kMmaKernels>(); }

}  // namespace
}  // namespace warpledger::sdpa
