// SPDX-License-Identifier: Apache-2.0
// What the rule allows a log-sum-exp in FP8, held against sums as tensor cores take them, played on
// the CPU: 32 products at a time, with the sum so far, each cut to 13 bits below the largest of
// them. That gives the values that an H100 gave, digit by digit as they were printed.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/kv_quantise.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::sdpa {
namespace {

constexpr size_t kAtOnce = 32;
constexpr int kBits = 13;
// Of `warpledger check` with its default seed.
constexpr uint64_t kSeed = 9348453635268248851U;

double SumAsTensorCoresDo(const std::vector<double>& products) {
  double sum = 0;
  for (size_t first = 0; first < products.size(); first += kAtOnce) {
    double largest = std::fabs(sum);
    for (size_t i = 0; i < kAtOnce; ++i) {
      largest = std::max(largest, std::fabs(products[first + i]));
    }
    if (largest == 0) continue;
    const double unit = std::ldexp(1.0, std::ilogb(largest) - kBits);
    sum = std::trunc(sum / unit) * unit;
    for (size_t i = 0; i < kAtOnce; ++i) sum += std::trunc(products[first + i] / unit) * unit;
  }
  return sum;
}

double LogSumExp(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

struct Sums {
  std::vector<double> lse;  // of each row, by such sums
  double error = 0;         // the largest
  double rounding = 0;      // half of what the rule allows for it
};

// As many query heads as K/V heads.
Sums SumsOf(const Problem& problem, uint64_t seed = kSeed) {
  const Inputs inputs = WithQuantisedKv(problem, MakeInputs(problem, InputKind::kOutliers, seed),
                                        {.scheme = {KvFormat::kE4m3}, .queries = true});
  const Reference reference = ComputeReference(problem, inputs);
  const QuantisedTensor& q = *inputs.quantised->q;
  const QuantisedTensor& k = inputs.quantised->k;
  const int dim = problem.head_dim;
  Sums sums;
  std::vector<double> products(static_cast<size_t>(dim));
  for (int row = 0; row < problem.heads_q * problem.seq_q; ++row) {
    const int head = row / problem.seq_q;
    const int hidden = problem.causal ? problem.seq_q - 1 - row % problem.seq_q : 0;
    const double scale = double{q.scales[static_cast<size_t>(head)]} *
                         k.scales[static_cast<size_t>(head)] / std::sqrt(double(dim));
    std::vector<double> scores;
    for (int key = 0; key < problem.seq_kv - hidden; ++key) {
      for (int d = 0; d < dim; ++d) {
        const auto at = [&](int of) { return static_cast<size_t>(of * dim + d); };
        products[static_cast<size_t>(d)] =
            double{CodeNumber(q.format, q.codes[at(row)])} *
            CodeNumber(k.format, k.codes[at(head * problem.seq_kv + key)]);
      }
      scores.push_back(SumAsTensorCoresDo(products) * scale);
    }
    sums.lse.push_back(LogSumExp(scores));
    const double exact = reference.lse[static_cast<size_t>(row)];
    sums.error = std::max(sums.error, std::fabs(sums.lse.back() - exact));
    sums.rounding =
        std::max(sums.rounding, std::fabs(reference.rounded_lse[static_cast<size_t>(row)] - exact));
  }
  return sums;
}

constexpr Problem WithHeadDim(int head_dim) { return {1, 2, 2, 130, 900, head_dim, false}; }
constexpr Problem CausalWithHeadDim(int head_dim) { return {1, 2, 2, 113, 203, head_dim, true}; }

TEST(TensorCoreSums, AreWhatAnH100GaveAtHeadDim256) {
  EXPECT_NEAR(SumsOf(WithHeadDim(256)).lse[95], 23.5822, 5e-5);
  EXPECT_NEAR(SumsOf(CausalWithHeadDim(256)).lse[37], 6.64838, 5e-6);
}

// One product of outliers outweighs the others, each of which loses bits at its size.
TEST(TensorCoreSums, StayWithinTheRuleWhereOneProductOutweighs) {
  constexpr Problem kProblem = {1, 8, 8, 512, 512, 64, true};
  constexpr uint64_t kItsSeed = 11;
  const Sums sums = SumsOf(kProblem, kItsSeed);
  EXPECT_LE(sums.error, 2 * sums.rounding);
  // What an H200 gave row 2356 in forward_gpu_test. Played sums are off by a fifth more.
  constexpr double kGiven = 40.6111;
  constexpr double kExact = 40.6313;
  EXPECT_LE(kExact - kGiven, 2 * sums.rounding);
  EXPECT_GT(kExact - kGiven, 2 * std::ldexp(kExact, -13)) << "the sum of magnitudes is no limit";
  EXPECT_NEAR(kExact - sums.lse[2356], 1.2 * (kExact - kGiven), 1e-3);
}

TEST(TensorCoreSums, StayWithinTheRule) {
  for (const int head_dim : {64, 128, 256}) {
    for (const Problem& problem : {WithHeadDim(head_dim), CausalWithHeadDim(head_dim)}) {
      const Sums sums = SumsOf(problem);
      EXPECT_LE(sums.error, 2 * sums.rounding) << head_dim;
      // A limit that allows everything says nothing. Less was needed here than an H200 needed at
      // head_dim 256, where a row was off by 0.0558 of the 0.0619 that it is allowed
      // (reports/decisions/0015-data-types.md).
      EXPECT_GE(sums.error, 0.2 * sums.rounding) << head_dim;
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
