// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/cuda_on_cpu.h"

#include "gtest/gtest.h"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/ptx.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/sdpa/mma/instructions.cuh"

namespace warpledger::emulation {
namespace {

TEST(Emulation, GivesEachThreadItsIndicesAndLetsAllMeetAtBarriers) {
  std::vector<int> order;
  RunCtas({.ctas = 6, .grid_x = 3, .threads = 64, .smem_bytes = 256}, [&] {
    auto* seen = reinterpret_cast<int*>(current->cta->smem);
    seen[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += seen[i];
    EXPECT_EQ(sum, 63 * 64 / 2);
    order.push_back(static_cast<int>(blockIdx.y * 10 + blockIdx.x));
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 10, 11, 12}));
}

TEST(Emulation, ExchangesValuesOverAWarp) {
  RunCtas({.threads = 64}, [&] {
    const int lane = static_cast<int>(threadIdx.x % 32);
    EXPECT_EQ(__shfl_xor_sync(0xffffffffu, lane, 5), lane ^ 5);
    EXPECT_EQ(__shfl_sync(0xffffffffu, lane, 7), 7);
    EXPECT_TRUE(__any_sync(0xffffffffu, lane == 17));
    EXPECT_FALSE(__any_sync(0xffffffffu, false));
  });
}

// The identity times a matrix, through both fragments and an accumulator.
TEST(Emulation, MultipliesFragmentsAsTheIsaLaysThemOut) {
  RunCtas({.threads = 32, .smem_bytes = 1024}, [&] {
    auto* tile = reinterpret_cast<half*>(current->cta->smem);  // (16, 16): k by column
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = lane; i < 256; i += 32) tile[i] = __float2half(static_cast<float>(i));
    __syncthreads();
    uint32_t identity[4] = {};
    for (int r = 0; r < 4; ++r) {
      for (int j = 0; j < 2; ++j) {
        const int row = lane / 4 + r % 2 * 8;
        const int k = lane % 4 * 2 + j + r / 2 * 8;
        if (row == k) identity[r] |= 0x3c00u << (16 * j);
      }
    }
    uint32_t b[4];
    sdpa::LdMatrixTransposed(b, sdpa::MmaSharedAddress(tile + lane % 16 * 16 + lane / 16 * 8));
    float c[4] = {};
    sdpa::Mma</*kBf16=*/false>(c, identity, b[0], b[1]);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(c[i], (lane / 4 + i / 2 * 8) * 16 + lane % 4 * 2 + i % 2);
    }
  });
}

// --- It must be able to fail -----------------------------------------------------------

float ReadOfACopy(CopiesLand copies, bool wait) {
  alignas(16) const float from[4] = {1, 2, 3, 4};
  float seen = 0;
  RunCtas({.threads = 32, .smem_bytes = 16, .copies = copies}, [&] {
    if (threadIdx.x == 0) {
      ptx::CpAsync16(sdpa::MmaSharedAddress(current->cta->smem), from, true);
      ptx::CpAsyncCommit();
      if (wait) ptx::CpAsyncWait<0>();
      seen = reinterpret_cast<const float*>(current->cta->smem)[2];
    }
  });
  return seen;
}

TEST(Emulation, ShowsACopyThatIsReadBeforeItIsWaitedFor) {
  EXPECT_EQ(ReadOfACopy(CopiesLand::kLate, true), 3);
  EXPECT_EQ(ReadOfACopy(CopiesLand::kEarly, true), 3);
  EXPECT_TRUE(std::isnan(ReadOfACopy(CopiesLand::kLate, false)));
}

// Of a bulk copy in two halves by two threads, the second phase of a barrier.
float ReadOfABulkCopy(CopiesLand copies, bool wait) {
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float seen = 0;
  RunCtas({.threads = 32, .smem_bytes = 48, .copies = copies}, [&] {
    const uint32_t smem = sdpa::MmaSharedAddress(current->cta->smem);
    const uint32_t barrier = smem + 32;
    if (threadIdx.x == 0) ptx::MbarrierInit(barrier, 1);
    __syncthreads();
    for (uint32_t phase = 0; phase < 2; ++phase) {
      if (threadIdx.x == 0) ptx::MbarrierArriveExpectBytes(barrier, 32);
      if (threadIdx.x < 2) {
        ptx::BulkLoad(smem + threadIdx.x * 16, from + threadIdx.x * 4, 16, barrier);
      }
      if (phase == 0 || wait) ptx::MbarrierWait(barrier, phase);
      if (threadIdx.x == 31) seen = reinterpret_cast<const float*>(current->cta->smem)[5];
      __syncthreads();
    }
  });
  return seen;
}

TEST(Emulation, ShowsABulkCopyThatIsReadBeforeItIsWaitedFor) {
  EXPECT_EQ(ReadOfABulkCopy(CopiesLand::kLate, true), 6);
  EXPECT_EQ(ReadOfABulkCopy(CopiesLand::kEarly, true), 6);
  EXPECT_TRUE(std::isnan(ReadOfABulkCopy(CopiesLand::kLate, false)));
}

TEST(Emulation, ShowsAMissingBarrierInOneOfTwoOrders) {
  const auto read_neighbour = [](bool reversed) {
    bool right = true;
    RunCtas({.threads = 64, .smem_bytes = 64, .reversed = reversed}, [&] {
      current->cta->smem[threadIdx.x] = 7;
      right = right && current->cta->smem[63 - threadIdx.x] == 7;  // no barrier in between
    });
    return right;
  };
  EXPECT_FALSE(read_neighbour(false) && read_neighbour(true));
}

using EmulationDeathTest = testing::Test;

TEST(EmulationDeathTest, EndsAtABarrierThatNotAllThreadsReach) {
  EXPECT_DEATH(RunCtas({.threads = 32},
                       [] {
                         if (threadIdx.x < 16) __syncthreads();
                       }),
               "a barrier that not all threads reach");
}

TEST(EmulationDeathTest, EndsAtAnAccessOutsideOfSharedMemoryAndAtAMisalignedOne) {
  const auto store_at = [](uint32_t offset) {
    RunCtas({.threads = 32, .smem_bytes = 64}, [offset] {
      sdpa::StoreSharedPair(sdpa::MmaSharedAddress(current->cta->smem) + offset, 0);
    });
  };
  store_at(60);
  EXPECT_DEATH(store_at(64), "outside of shared memory");
  EXPECT_DEATH(store_at(2), "misaligned");
}

}  // namespace
}  // namespace warpledger::emulation
