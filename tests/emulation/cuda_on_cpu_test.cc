// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/cuda_on_cpu.h"

#include "gtest/gtest.h"
#include "kernels/common/cluster.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/ptx.cuh"
#include "kernels/common/tma.cuh"
#include "kernels/common/wgmma.cuh"
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
      if (phase == 1 && !wait) ptx::MbarrierWait(barrier, phase);  // it must come before the end
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

TEST(Emulation, VotesAndArrivesAtNamedBarriers) {
  int arrived = -1;
  RunCtas({.threads = 96, .smem_bytes = 256}, [&] {
    const unsigned warp = threadIdx.x / 32;
    for (unsigned round = 0; round < 3; ++round) {
      if (warp == 2) {
        arrived = static_cast<int>(round);
        ptx::NamedBarrierArrive(1, 96);
      } else {
        ptx::NamedBarrierSync(1, 96);
        EXPECT_EQ(arrived, static_cast<int>(round));
        EXPECT_EQ(ptx::NamedBarrierAny(2, 64, round == 1 && threadIdx.x == 5), round == 1);
      }
      __syncthreads();
    }
  });
}

TEST(EmulationDeathTest, EndsWhereACtaEndsBeforeItsCopies) {
  alignas(16) const float from[4] = {1, 2, 3, 4};
  const auto copy = [&](bool wait) {
    RunCtas({.threads = 32, .smem_bytes = 48}, [&] {
      const uint32_t smem = sdpa::MmaSharedAddress(current->cta->smem);
      if (threadIdx.x > 0) return;
      ptx::MbarrierInit(smem + 32, 1);
      ptx::MbarrierArriveExpectBytes(smem + 32, 16);
      ptx::BulkLoad(smem, from, 16, smem + 32);
      if (wait) ptx::MbarrierWait(smem + 32, 0);
    });
  };
  copy(true);
  EXPECT_DEATH(copy(false), "a copy may be on its way");
  float to[4] = {};
  const auto store = [&](bool commit, bool wait) {
    RunCtas({.threads = 32, .smem_bytes = 48}, [&] {
      if (threadIdx.x > 0) return;
      StoreBulk({{reinterpret_cast<unsigned char*>(to), current->cta->smem, 16}});
      if (commit) CommitStores();
      if (wait) WaitForStores(0);
    });
  };
  store(true, true);
  EXPECT_DEATH(store(true, false), "a store by TMA may still read");
  EXPECT_DEATH(store(false, false), "a store by TMA may still read");
}

TEST(EmulationDeathTest, EndsWhereAnArrivalAtAnotherCtaMayComeTooLate) {
  const auto end_by = [](void (*barrier)()) {
    RunCtas({.ctas = 2, .cluster = 2, .threads = 32, .smem_bytes = 256}, [barrier] {
      const uint32_t own = sdpa::MmaSharedAddress(current->cta->smem);
      if (threadIdx.x == 0) ptx::MbarrierInit(own, 2);
      ptx::ClusterSync();
      if (threadIdx.x == 0) {
        for (uint32_t rank = 0; rank < 2; ++rank) {
          ptx::MbarrierArriveClusterRelaxed(ptx::MapShared(own, rank));
        }
      }
      barrier();
    });
  };
  end_by([] { ptx::ClusterSync(); });
  EXPECT_DEATH(end_by([] {
                 ptx::ClusterArriveRelaxed();
                 ptx::ClusterWait();
               }),
               "may be on its way");
}

TEST(Emulation, WaitsAtAClusterForThreadsThatHaveNotEnded) {
  int late = 0;
  RunCtas({.ctas = 2, .cluster = 2, .threads = 64, .smem_bytes = 256}, [&] {
    if (threadIdx.x >= 32) return;
    if (blockIdx.x == 1) late = 1;
    ptx::ClusterSync();
    EXPECT_EQ(late, 1);
    EXPECT_EQ(ptx::ClusterRank(), blockIdx.x);
  });
}

// Where byte `byte` of row `row` lies in a tile of swizzled rows (PTX ISA, "Swizzling modes").
uint32_t Swizzled(uint32_t row_bytes, uint32_t row, uint32_t byte) {
  const uint32_t chunk = byte / 16 ^ (row_bytes == 128 ? row % 8 : row / 2 % 4);
  return row * row_bytes + chunk * 16 + byte % 16;
}

// A (64, 16) and B (16, 64) in fp16, and their product.
struct Matrices {
  static float A(uint32_t row, uint32_t k) {
    return static_cast<float>((row * 7 + k * 3) % 13) - 6;
  }
  static float B(uint32_t k, uint32_t n) { return static_cast<float>((n * 5 + k * 11) % 17) - 8; }
  static float Product(uint32_t row, uint32_t n) {
    float sum = 0;
    for (uint32_t k = 0; k < 16; ++k) sum += A(row, k) * B(k, n);
    return sum;
  }
};

void ExpectProduct(const float (&d)[32], float before) {
  const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t n = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    EXPECT_EQ(d[i], before + Matrices::Product(row + i / 2 % 2 * 8, n)) << threadIdx.x << ", " << i;
  }
}

TEST(Emulation, MultipliesByDescriptorsAndEndsProductsOfAWarpgroupTogether) {
  constexpr uint32_t kA = 1024, kB = 16384, kBTransposed = 32768;
  for (const CopiesLand land : {CopiesLand::kEarly, CopiesLand::kLate}) {
    RunCtas({.threads = 128, .smem_bytes = 49152, .copies = land}, [&] {
      const auto put = [](uint32_t address, float x) {
        const sdpa::Fp16 bits = sdpa::FloatToFp16(x);
        std::memcpy(Smem(address, 2), &bits, 2);
      };
      for (uint32_t i = threadIdx.x; i < 64 * 16; i += 128) {
        const uint32_t row = i / 16, k = i % 16;
        // The product takes the second 16 of 64 columns along K.
        put(kA + Swizzled(128, row, (16 + k) * 2), Matrices::A(row, k));
        put(kB + Swizzled(128, row, (16 + k) * 2), Matrices::B(k, row));
        put(kBTransposed + Swizzled(128, k, row * 2), Matrices::B(k, row));
      }
      __syncthreads();
      const auto along_k = [](uint32_t at) {
        return ptx::AdvanceDescriptor(ptx::SwizzledDescriptor(at), 32);
      };
      float d[32] = {};
      ptx::Wgmma<64>::SS(d, along_k(kA), along_k(kB), 0);
      ptx::WgmmaCommit();
      EXPECT_EQ(std::isnan(d[0]), land == CopiesLand::kLate);
      ptx::WgmmaWait<0>();
      ExpectProduct(d, 0);

      // A's fragments: pairs of columns, of two rows and of the other eight columns.
      uint32_t a[4];
      const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t k = threadIdx.x % 4 * 2 + i / 2 * 8;
        const auto half = [&](uint32_t j) {
          return uint32_t{sdpa::FloatToFp16(Matrices::A(row + i % 2 * 8, k + j))};
        };
        a[i] = half(0) | half(1) << 16;
      }
      std::fill_n(d, 32, 100.0f);
      ptx::Wgmma<64>::RS(d, a, ptx::SwizzledDescriptor(kBTransposed, 8192), 1);
      ptx::WgmmaCommit();
      ptx::WgmmaWait<0>();
      ExpectProduct(d, 100);
    });
  }
}

TEST(Emulation, MultipliesBytesByDescriptors) {
  constexpr uint32_t kB = 1024;  // (64, 64) codes, 64-byte swizzle
  RunCtas({.threads = 128, .smem_bytes = 8192}, [&] {
    const auto code = [](float x) {
      return sdpa::FloatToFp8(sdpa::kE4m3, x, sdpa::Fp8Overflow::kSaturate);
    };
    for (uint32_t i = threadIdx.x; i < 64 * 32; i += 128) {
      const uint32_t n = i / 32, k = i % 32;
      *Smem(kB + Swizzled(64, n, 32 + k), 1) = code(k < 16 ? Matrices::B(k, n) : 0);
    }
    __syncthreads();
    uint32_t a[4];
    const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (uint32_t i = 0; i < 4; ++i) {
      a[i] = 0;
      for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t k = threadIdx.x % 4 * 4 + j + i / 2 * 16;
        const float x = k < 16 ? Matrices::A(row + i % 2 * 8, k) : 1;
        a[i] |= uint32_t{code(x)} << 8 * j;
      }
    }
    float d[32];
    const uint64_t b = ptx::AdvanceDescriptor(ptx::SwizzledDescriptor<64>(kB), 32);
    ptx::Wgmma<64, ptx::WgmmaInputs::kE4m3>::RS(d, a, b, 0);
    ptx::WgmmaCommit();
    ptx::WgmmaWait<0>();
    ExpectProduct(d, 0);
  });
}

// A box that hangs over the tensor's last row, to shared memory and from there to another tensor.
TEST(Emulation, MovesBoxesOfTensorMaps) {
  constexpr uint32_t kRows = 10, kBox = 8, kBarrier = 256, kTile = 1024;
  alignas(16) uint16_t from[2][kRows][64];
  alignas(16) uint16_t to[2][kRows][64] = {};
  uint16_t next = 0;
  for (auto& head : from) {
    for (auto& row : head) {
      for (uint16_t& x : row) x = ++next;
    }
  }
  const auto map_of = [&](void* data) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {64, kRows, 2};
    const cuuint64_t strides[] = {128, kRows * 128};
    const cuuint32_t box[] = {64, kBox, 1};
    EXPECT_EQ(ptx::EncodeTensorMapOnCpu(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, data, sizes,
                                        strides, box, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
  };
  const CUtensorMap source = map_of(from), target = map_of(to);
  for (const CopiesLand land : {CopiesLand::kEarly, CopiesLand::kLate}) {
    std::memset(to, 0, sizeof(to));
    RunCtas({.threads = 32, .smem_bytes = 4096, .copies = land}, [&] {
      if (threadIdx.x == 0) {
        ptx::MbarrierInit(kBarrier, 1);
        ptx::MbarrierArriveExpectBytes(kBarrier, kBox * 128);
        ptx::TmaLoad3d(kTile, &source, kBarrier, 0, 4, 1);
      }
      __syncwarp();
      ptx::MbarrierWait(kBarrier, 0);
      for (uint32_t row = threadIdx.x; row < kBox; row += 32) {
        for (uint32_t column = 0; column < 64; ++column) {
          uint16_t x;
          std::memcpy(&x, Smem(kTile + Swizzled(128, row, column * 2), 2), 2);
          EXPECT_EQ(x, row + 4 < kRows ? from[1][row + 4][column] : 0) << row << ", " << column;
        }
      }
      __syncwarp();
      if (threadIdx.x == 0) {
        ptx::TmaStore3d(&target, kTile, 0, 4, 1);
        ptx::BulkCommit();
        EXPECT_EQ(to[1][4][0] == 0, land == CopiesLand::kLate);
        ptx::BulkWaitRead<0>();
      }
    });
    for (uint32_t head = 0; head < 2; ++head) {
      for (uint32_t row = 0; row < kRows; ++row) {
        EXPECT_EQ(to[head][row][63], head == 1 && row >= 4 ? from[1][row][63] : 0);
      }
    }
  }
}

}  // namespace
}  // namespace warpledger::emulation
