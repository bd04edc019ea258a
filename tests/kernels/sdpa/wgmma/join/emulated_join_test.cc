// SPDX-License-Identifier: Apache-2.0
// The kernel that joins parts of O, run on the CPU and held against the sums in fp64.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/wgmma/join/join_kernel.cuh"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {
namespace {

constexpr float kScale = 0.125f;
constexpr float kInf = std::numeric_limits<float>::infinity();

// What `splits` CTAs have left of `rows` rows.
template <int kHeadDim>
struct Parts {
  Parts(int row_count, int split_count)
      : rows(row_count),
        splits(split_count),
        out(static_cast<size_t>(row_count * split_count * kHeadDim / 4)),
        stats(static_cast<size_t>(row_count * split_count)) {
    std::mt19937 random(static_cast<unsigned>(17 * split_count));
    std::normal_distribution<float> normal;
    for (float4& x : out) {
      x = make_float4(normal(random), normal(random), normal(random), normal(random));
    }
    for (float2& s : stats)
      s = make_float2(10.0f * normal(random), 1.0f + std::abs(normal(random)));
  }

  float2& Stats(int split, int row) { return stats[static_cast<size_t>(split * rows + row)]; }
  float& Out(int split, int row, int column) {
    return reinterpret_cast<float*>(out.data())[(split * rows + row) * kHeadDim + column];
  }
  // As a CTA leaves a row of which it has no keys.
  void SeeNothing(int split, int row) {
    Stats(split, row) = make_float2(-kInf, 0.0f);
    for (int c = 0; c < kHeadDim; ++c) Out(split, row, c) = 0.0f;
  }

  int rows;
  int splits;
  std::vector<float4> out;
  std::vector<float2> stats;
};

template <int kHeadDim>
struct Joined {
  explicit Joined(const Parts<kHeadDim>& parts)
      : o(static_cast<size_t>(parts.rows * kHeadDim), 0x7e00),
        lse(static_cast<size_t>(parts.rows), NAN) {
    const JoinParams params = {.parts = parts.out.data(),
                               .stats = parts.stats.data(),
                               .o = o.data(),
                               .lse = lse.data(),
                               .rows = parts.rows,
                               .splits = parts.splits,
                               .softmax_scale = kScale};
    Run<kLeastJoinCapacity>(params);
  }
  template <int kMost>
  static void Run(const JoinParams& params) {
    if constexpr (kMost < kMaxJoinSplits) {
      if (JoinCapacity(params.splits) > kMost) return Run<2 * kMost>(params);
    }
    emulation::RunCtas(
        {.ctas = static_cast<unsigned>(params.rows),
         .threads = JoinThreads(kHeadDim, kMost),
         .smem_bytes = static_cast<size_t>(JoinSmemBytes(kHeadDim, kMost))},
        [&] { JoinRow<kHeadDim, false, kMost>(params, emulation::current->cta->smem); });
  }

  float O(int row, int column) const {
    return Fp16ToFloat(o[static_cast<size_t>(row * kHeadDim + column)]);
  }

  std::vector<uint16_t> o;
  std::vector<float> lse;
};

template <int kHeadDim>
void ExpectTheSums(Parts<kHeadDim> parts) {
  const Joined<kHeadDim> joined(parts);
  for (int row = 0; row < parts.rows; ++row) {
    double largest = -kInf;
    for (int s = 0; s < parts.splits; ++s) {
      largest = std::max(largest, static_cast<double>(parts.Stats(s, row).x));
    }
    std::vector<double> weights;
    double sum = 0;
    for (int s = 0; s < parts.splits; ++s) {
      weights.push_back(std::exp(kScale * (parts.Stats(s, row).x - largest)));
      sum += weights.back() * parts.Stats(s, row).y;
    }
    EXPECT_NEAR(joined.lse[static_cast<size_t>(row)], kScale * largest + std::log(sum), 1e-5);
    for (int column = 0; column < kHeadDim; ++column) {
      double x = 0;
      for (int s = 0; s < parts.splits; ++s) x += weights[s] * parts.Out(s, row, column);
      EXPECT_NEAR(joined.O(row, column), x / sum, 1e-3 * (1 + std::abs(x / sum)))
          << parts.splits << " splits, row " << row << ", column " << column;
    }
  }
}

TEST(EmulatedJoin, OfAnyNumberOfPartsAgreesWithTheSums) {
  for (const int splits : {1, 2, 3, 4, 7, 8, 9, 16, 17, 33, kMaxJoinSplits}) {
    ExpectTheSums(Parts<64>(3, splits));
    ExpectTheSums(Parts<128>(3, splits));
  }
}

TEST(EmulatedJoin, LeavesOutPartsWithoutKeys) {
  Parts<64> parts(3, 20);
  for (const int split : {0, 1, 2, 13, 19}) parts.SeeNothing(split, 1);
  ExpectTheSums(parts);
}

TEST(EmulatedJoin, OfNoKeysIsZeroAndAnLseOfMinusInfinity) {
  Parts<64> parts(2, 10);
  for (int split = 0; split < 10; ++split) parts.SeeNothing(split, 1);
  const Joined<64> joined(parts);
  EXPECT_EQ(joined.lse[1], -kInf);
  for (int column = 0; column < 64; ++column) EXPECT_EQ(joined.O(1, column), 0.0f);
  EXPECT_TRUE(std::isfinite(joined.lse[0]));
}

// As an infinite V makes it. What stands for no part must not add 0 times infinity to it.
TEST(EmulatedJoin, OfAnInfinitePartIsInfinite) {
  for (const int splits : {2, 9, 33}) {
    Parts<64> parts(1, splits);
    parts.Out(splits - 1, 0, 5) = kInf;
    parts.Stats(splits - 1, 0).x = 3.0f;
    const Joined<64> joined(parts);
    EXPECT_EQ(joined.O(0, 5), kInf) << splits << " splits";
    EXPECT_TRUE(std::isfinite(joined.O(0, 4)));
  }
}

}  // namespace
}  // namespace warpledger::sdpa
