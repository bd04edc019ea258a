// SPDX-License-Identifier: Apache-2.0
// Online softmax without maxima (WgmmaRescale::kSumRises), run on the CPU: a warp's 16 rows over
// tiles of 16 keys, and each key's value its number.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/wgmma/softmax.cuh"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {
namespace {

constexpr int kRows = 16;
constexpr int kTileKeys = 16;
constexpr int kPerThread = kTileKeys / 2;  // scores of a thread, of two rows
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Softmax = RowPairSoftmax<ExpMethod::kExpFolded, WgmmaRescale::kSumRises>;
using Scores = std::vector<std::array<float, kRows>>;  // by key

struct Result {
  std::array<double, kRows> mean = {};  // of the values
  int risen = 0;                        // tiles whose maxima were asked for, behind the first
};

// `scale` as softmax_scale; tiles from the last to the first, as the kernel takes them.
Result MeansOf(const Scores& scores, float scale) {
  Result result;
  emulation::RunCtas({.threads = 32}, [&] {
    const int lane = static_cast<int>(threadIdx.x);
    const float exp_scale = Softmax::Exp::Scale(scale);
    Softmax softmax;
    float out[2] = {0.0f, 0.0f};
    const int tiles = static_cast<int>(scores.size()) / kTileKeys;
    for (int n = tiles - 1; n >= 0; --n) {
      const auto key = [&](int i) { return n * kTileKeys + i / 4 * 8 + lane % 4 * 2 + i % 2; };
      const auto load = [&](float(&tile)[kPerThread]) {
        for (int i = 0; i < kPerThread; ++i) {
          const int row = lane / 4 + i / 2 % 2 * 8;
          tile[i] = scores[static_cast<size_t>(key(i))][static_cast<size_t>(row)];
        }
      };
      float tile[kPerThread];
      float rescale[2] = {1.0f, 1.0f};
      load(tile);
      if (n == tiles - 1) {
        softmax.Update(tile, exp_scale, rescale);
      } else {
        float tile_sum[2];
        const bool stays = softmax.TakeOldMaxima(tile, exp_scale, tile_sum);
        if (__any_sync(0xffffffffu, !stays)) {
          load(tile);
          softmax.TakeNewMaxima(tile, exp_scale, rescale);
          if (lane == 0) ++result.risen;
        } else {
          softmax.AddSums(tile_sum);
        }
      }
      for (int r = 0; r < 2; ++r) out[r] *= rescale[r];
      for (int i = 0; i < kPerThread; ++i) {
        out[i / 2 % 2] += tile[i] * static_cast<float>(key(i));
      }
    }
    softmax.Finish();
    for (int r = 0; r < 2; ++r) {
      const float sum = QuadSum(out[r]);
      if (lane % 4 != 0) continue;
      result.mean[static_cast<size_t>(lane / 4 + 8 * r)] =
          softmax.sum[r] > 0.0f ? sum / softmax.sum[r] : 0.0f;
    }
  });
  return result;
}

void ExpectRight(const Scores& scores, float scale, const Result& result) {
  for (size_t row = 0; row < kRows; ++row) {
    double largest = -kInfinity;
    for (const auto& of : scores) largest = std::max(largest, double{of[row]});
    double sum = 0;
    double mean = 0;
    for (size_t key = 0; key < scores.size(); ++key) {
      const double p = std::exp((scores[key][row] - largest) * scale);
      sum += p;
      mean += p * static_cast<double>(key);
    }
    EXPECT_NEAR(result.mean[row], mean / sum, 1e-5 * static_cast<double>(scores.size()))
        << "row " << row;
  }
}

// Small differences, the same in each run.
Scores Flat(int tiles) {
  Scores scores(static_cast<size_t>(tiles * kTileKeys));
  for (size_t key = 0; key < scores.size(); ++key) {
    for (size_t row = 0; row < kRows; ++row) {
      scores[key][row] = std::sin(static_cast<float>(key * kRows + row));
    }
  }
  return scores;
}

TEST(EmulatedSoftmax, AsksForNoMaximaWhereNoRowRises) {
  const Scores scores = Flat(8);
  const Result result = MeansOf(scores, 1.0f);
  EXPECT_EQ(result.risen, 0);
  ExpectRight(scores, 1.0f, result);
}

TEST(EmulatedSoftmax, SeesARowThatRises) {
  // By more than 2^8, and beyond what fp32 holds of an exponential.
  for (const float rise : {10.0f, 80.0f, 200.0f, 1e4f}) {
    for (const size_t row : {0U, 5U, 8U, 15U}) {
      Scores scores = Flat(8);
      scores[37][row] += rise;
      const Result result = MeansOf(scores, 1.0f);
      EXPECT_EQ(result.risen, 1) << rise;
      ExpectRight(scores, 1.0f, result);
    }
  }
}

TEST(EmulatedSoftmax, RisesAgainAndAgain) {
  Scores scores = Flat(8);
  for (size_t key = 0; key < scores.size(); ++key) {
    scores[key][3] += 40.0f * static_cast<float>(7 - key / kTileKeys);
    scores[key][9] -= 40.0f * static_cast<float>(7 - key / kTileKeys);
  }
  const Result result = MeansOf(scores, 1.0f);
  EXPECT_EQ(result.risen, 7);
  ExpectRight(scores, 1.0f, result);
}

TEST(EmulatedSoftmax, ARowThatSawNoKeyYetTakesItsFirstMaximum) {
  // The first two tiles are masked for one row, whose scores lie far below 0 later, where
  // exponentials against 0 would all be 0.
  Scores scores = Flat(8);
  for (size_t key = 0; key < scores.size(); ++key) {
    scores[key][2] = key / kTileKeys >= 6 ? -kInfinity : scores[key][2] - 1000.0f;
  }
  const Result result = MeansOf(scores, 1.0f);
  EXPECT_EQ(result.risen, 2);  // once for nothing
  ExpectRight(scores, 1.0f, result);
}

}  // namespace
}  // namespace warpledger::sdpa
