// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/inputs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/fp16.h"

namespace warpledger::sdpa {
namespace {

constexpr Problem kGrouped = {.batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 5, .seq_kv = 7};
constexpr Problem kLarge = {.batch = 1, .heads_q = 8, .heads_kv = 8, .seq_q = 512, .seq_kv = 512};

struct Moments {
  double mean = 0;
  double variance = 0;
  double beyond_six = 0;  // share of |x| > 6, which N(0, 1) all but never reaches
};

Moments MomentsOf(const std::vector<Fp16>& values) {
  double sum = 0;
  double square = 0;
  double beyond = 0;
  for (const Fp16 value : values) {
    const double x = Fp16ToFloat(value);
    sum += x;
    square += x * x;
    beyond += std::fabs(x) > 6 ? 1 : 0;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, square / n - (sum / n) * (sum / n), beyond / n};
}

// Within five standard errors of the mean and the variance of N(0, variance).
void ExpectNormal(const std::vector<Fp16>& values, double variance) {
  const Moments moments = MomentsOf(values);
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(moments.mean, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(moments.variance, variance, 5 * variance * std::sqrt(2 / n));
}

uint64_t Fnv1a(const std::vector<Fp16>& values) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const Fp16 value : values) {
    hash = (hash ^ (value & 0xff)) * 0x100000001b3ull;
    hash = (hash ^ (value >> 8)) * 0x100000001b3ull;
  }
  return hash;
}

TEST(MakeInputs, FillsTensorsOfTheProblemsSizes) {
  for (const NamedInputKind& kind : kInputKinds) {
    const Inputs inputs = MakeInputs(kGrouped, kind.kind, 1);
    EXPECT_EQ(inputs.q.size(), 2u * 4 * 5 * 64) << kind.name;
    EXPECT_EQ(inputs.k.size(), 2u * 2 * 7 * 64) << kind.name;
    EXPECT_EQ(inputs.v.size(), 2u * 2 * 7 * 64) << kind.name;
  }
}

TEST(MakeInputs, IsTheSameForASeedAndAnotherForAnotherSeed) {
  for (const NamedInputKind& kind : kInputKinds) {
    const Inputs once = MakeInputs(kGrouped, kind.kind, 7);
    const Inputs again = MakeInputs(kGrouped, kind.kind, 7);
    const Inputs other = MakeInputs(kGrouped, kind.kind, 8);
    EXPECT_TRUE(once.q == again.q && once.k == again.k && once.v == again.v) << kind.name;
    EXPECT_TRUE(once.q != other.q && once.k != other.k && once.v != other.v) << kind.name;
  }
}

// Records name inputs by kind and seed alone: a change of these values makes
// old correctness lines speak of inputs that can't be made again.
TEST(MakeInputs, GivesTheValuesThatOldRecordsSpeakOf) {
  const Inputs inputs = MakeInputs(kGrouped, InputKind::kNormal, 1);
  EXPECT_EQ(Fnv1a(inputs.q), 0x98d0303cc2dc1100ull);
  EXPECT_EQ(Fnv1a(inputs.k), 0x88e26e26870e7115ull);
  EXPECT_EQ(Fnv1a(inputs.v), 0x77b73d8d5a6cd80aull);
  EXPECT_EQ(Fnv1a(MakeInputs(kGrouped, InputKind::kOutliers, 1).q), 0x27ebd29d4ae99f63ull);
  EXPECT_EQ(Fnv1a(MakeInputs(kGrouped, InputKind::kLargeLogits, 1).k), 0x76d1c97a4d7048b5ull);
  EXPECT_EQ(Fnv1a(MakeInputs(kGrouped, InputKind::kConstant, 1).v), 0x181f4135282d57a5ull);
}

TEST(MakeInputs, DrawsQAndKAndVFromStreamsOfTheirOwn) {
  const Inputs inputs = MakeInputs(kLarge, InputKind::kNormal, 1);
  const auto equal_places = [](const std::vector<Fp16>& a, const std::vector<Fp16>& b) {
    size_t equal = 0;
    for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
    return static_cast<double>(equal) / static_cast<double>(a.size());
  };
  // Independent draws fall on the same fp16 number about once in a thousand.
  EXPECT_LT(equal_places(inputs.q, inputs.k), 0.01);
  EXPECT_LT(equal_places(inputs.k, inputs.v), 0.01);
  EXPECT_LT(equal_places(inputs.q, inputs.v), 0.01);
}

TEST(MakeInputs, OfKindNormalAreStandardNormal) {
  const Inputs inputs = MakeInputs(kLarge, InputKind::kNormal, 2);
  ExpectNormal(inputs.q, 1);
  ExpectNormal(inputs.k, 1);
  ExpectNormal(inputs.v, 1);
  EXPECT_EQ(MomentsOf(inputs.q).beyond_six, 0);
}

TEST(MakeInputs, OfKindOutliersHaveOneInAThousandOfVariance100) {
  const Inputs inputs = MakeInputs(kLarge, InputKind::kOutliers, 3);
  for (const std::vector<Fp16>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    const Moments moments = MomentsOf(*tensor);
    const auto n = static_cast<double>(tensor->size());
    // An outlier, of variance 101, lies beyond 6 with probability 0.5504.
    const double share = 0.001 * 0.5504;
    EXPECT_NEAR(moments.beyond_six, share, 5 * std::sqrt(share / n));
    // 0.1% of variance 101 among 1; the fourth moment is 3 + 0.001 * 3 * 101^2.
    EXPECT_NEAR(moments.variance, 1.1, 5 * std::sqrt(33.6 / n));
  }
}

TEST(MakeInputs, OfKindLargeLogitsHaveWideQAndKAndPlainV) {
  const Inputs inputs = MakeInputs(kLarge, InputKind::kLargeLogits, 4);
  ExpectNormal(inputs.q, 64);
  ExpectNormal(inputs.k, 64);
  ExpectNormal(inputs.v, 1);
  double largest = 0;
  for (int i = 0; i < 512; ++i) {
    double score = 0;
    for (int d = 0; d < 64; ++d) {
      score += double{Fp16ToFloat(inputs.q[i * 64 + d])} * Fp16ToFloat(inputs.k[i * 64 + d]);
    }
    largest = std::max(largest, std::fabs(score / 8));
  }
  EXPECT_GT(largest, 100) << "exp() of such a score overflows unless the maximum is taken off";
}

TEST(MakeInputs, OfKindConstantRepeatOneRowOfKAndOneOfV) {
  const Inputs inputs = MakeInputs(kGrouped, InputKind::kConstant, 5);
  for (const std::vector<Fp16>* tensor : {&inputs.k, &inputs.v}) {
    for (size_t i = 64; i < tensor->size(); ++i) {
      ASSERT_EQ((*tensor)[i], (*tensor)[i % 64]) << i;
    }
    EXPECT_GT(std::set<Fp16>(tensor->begin(), tensor->begin() + 64).size(), 30u)
        << "the row itself is no constant";
  }
  EXPECT_NE(inputs.k, inputs.v);
  EXPECT_FALSE(std::equal(inputs.q.begin(), inputs.q.begin() + 64, inputs.q.begin() + 64));
}

// So that a bf16 problem and its fp16 twin differ by rounding alone.
TEST(MakeInputs, OfBf16AreTheSameDrawsRoundedToIt) {
  Problem bf16 = kGrouped;
  bf16.dtype = Dtype::kBf16;
  const Inputs narrow = MakeInputs(bf16, InputKind::kNormal, 1);
  const Inputs wide = MakeInputs(kGrouped, InputKind::kNormal, 1);
  ASSERT_EQ(narrow.k.size(), wide.k.size());
  for (size_t i = 0; i < wide.k.size(); ++i) {
    EXPECT_NEAR(Bf16ToFloat(narrow.k[i]), Fp16ToFloat(wide.k[i]),
                std::fabs(Fp16ToFloat(wide.k[i])) * (0x1p-8 + 0x1p-11) + 0x1p-24);
  }
}

TEST(MakeInputs, AreFiniteWhateverTheKind) {
  for (const NamedInputKind& kind : kInputKinds) {
    const Inputs inputs = MakeInputs(kLarge, kind.kind, 6);
    for (const std::vector<Fp16>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
      EXPECT_TRUE(std::all_of(tensor->begin(), tensor->end(), [](Fp16 x) {
        return std::isfinite(Fp16ToFloat(x));
      })) << kind.name;
    }
  }
}

TEST(InputKinds, HaveUniqueNames) {
  std::set<std::string_view> names;
  std::set<InputKind> kinds;
  for (const NamedInputKind& kind : kInputKinds) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_TRUE(kinds.insert(kind.kind).second) << kind.name;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
