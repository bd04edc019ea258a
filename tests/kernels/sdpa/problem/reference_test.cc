// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/reference.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/problem/inputs.h"

namespace warpledger::sdpa {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string Describe(const Problem& p) {
  std::ostringstream text;
  text << "B" << p.batch << " Hq" << p.heads_q << " Hkv" << p.heads_kv << " Sq" << p.seq_q << " Skv"
       << p.seq_kv << (p.causal ? " causal" : "");
  return text.str();
}

// SDPA straight from its definition, in extended precision: no shared layouts,
// no row lengths, a mask test per pair.
struct Definition {
  std::vector<long double> out;
  std::vector<long double> lse;
};

Definition FromDefinition(const Problem& p, const Inputs& in) {
  Definition result;
  const long double scale = 1 / std::sqrt(static_cast<long double>(p.head_dim));
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.heads_q; ++h) {
      const int kv_head = h / (p.heads_q / p.heads_kv);
      const auto q = [&](int i, int d) -> long double {
        return Fp16ToFloat(in.q[((b * p.heads_q + h) * p.seq_q + i) * p.head_dim + d]);
      };
      const auto kv = [&](const std::vector<Fp16>& x, int j, int d) -> long double {
        return Fp16ToFloat(x[((b * p.heads_kv + kv_head) * p.seq_kv + j) * p.head_dim + d]);
      };
      for (int i = 0; i < p.seq_q; ++i) {
        std::vector<long double> s(static_cast<size_t>(p.seq_kv), -kInfinity);
        long double max = -kInfinity;
        for (int j = 0; j < p.seq_kv; ++j) {
          if (p.causal && j > i + p.seq_kv - p.seq_q) continue;
          long double dot = 0;
          for (int d = 0; d < p.head_dim; ++d) dot += q(i, d) * kv(in.k, j, d);
          s[j] = dot * scale;
          max = std::max(max, s[j]);
        }
        const bool sees_none = max == -kInfinity;
        long double sum = 0;
        for (int j = 0; j < p.seq_kv; ++j) sum += sees_none ? 0 : std::exp(s[j] - max);
        for (int d = 0; d < p.head_dim; ++d) {
          long double o = 0;
          for (int j = 0; j < p.seq_kv; ++j) {
            if (!sees_none) o += std::exp(s[j] - max) / sum * kv(in.v, j, d);
          }
          result.out.push_back(o);
        }
        result.lse.push_back(sees_none ? -kInfinity : max + std::log(sum));
      }
    }
  }
  return result;
}

// All of Q, K and V zero, to be filled in by hand.
Inputs Zeros(const Problem& p) {
  return {std::vector<Fp16>(static_cast<size_t>(QueryElements(p))),
          std::vector<Fp16>(static_cast<size_t>(KeyElements(p))),
          std::vector<Fp16>(static_cast<size_t>(KeyElements(p)))};
}

TEST(Reference, OfOneKeyIsItsValueAndItsScore) {
  const Problem p = {.seq_q = 1, .seq_kv = 1};
  Inputs in = Zeros(p);
  in.q[0] = FloatToFp16(2);
  in.k[0] = FloatToFp16(3);
  in.q[1] = FloatToFp16(-1);
  in.k[1] = FloatToFp16(4);
  for (int d = 0; d < 64; ++d) in.v[d] = FloatToFp16(static_cast<float>(d) - 7.5f);
  const Reference reference = ComputeReference(p, in);
  for (int d = 0; d < 64; ++d) {
    EXPECT_EQ(reference.out[d], d - 7.5);
    EXPECT_EQ(reference.naive_out[d], static_cast<float>(d) - 7.5f);
  }
  EXPECT_DOUBLE_EQ(reference.lse[0], (2.0 * 3 - 1.0 * 4) / 8);  // scale 1 / sqrt(64)
}

// Scores 0 and ln 3 rounded to fp16: weights e^0 and e^s over their sum.
TEST(Reference, OfTwoKeysIsTheirWeightedMeanAsOneWorksOutByHand) {
  const Problem p = {.seq_q = 1, .seq_kv = 2};
  Inputs in = Zeros(p);
  in.q[5] = FloatToFp16(8);
  in.k[64 + 5] = FloatToFp16(1.0986f);
  in.v[0] = FloatToFp16(1);
  in.v[64] = FloatToFp16(5);
  const double s = Fp16ToFloat(FloatToFp16(1.0986f));
  const double weight = std::exp(s) / (1 + std::exp(s));
  const Reference reference = ComputeReference(p, in);
  EXPECT_NEAR(reference.out[0], (1 - weight) * 1 + weight * 5, 1e-14);
  EXPECT_NEAR(reference.out[0], 4.0, 1e-3);  // about a quarter and three quarters
  EXPECT_EQ(reference.out[1], 0.0);
  EXPECT_NEAR(reference.lse[0], std::log(1 + std::exp(s)), 1e-14);
}

TEST(Reference, OfEqualKeysAveragesTheValues) {
  const Problem p = {.seq_q = 2, .seq_kv = 4};
  Inputs in = Zeros(p);
  for (int j = 0; j < 4; ++j) in.v[j * 64 + 3] = FloatToFp16(static_cast<float>(1 << j));
  const Reference reference = ComputeReference(p, in);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reference.out[i * 64 + 3], (1 + 2 + 4 + 8) / 4.0);
    EXPECT_DOUBLE_EQ(reference.lse[i], std::log(4.0));
  }
}

TEST(Reference, OfConstantRowsIsTheValueRow) {
  for (const int keys : {1, 3, 32, 65}) {
    const Problem p = {.heads_q = 2, .heads_kv = 2, .seq_q = 5, .seq_kv = keys};
    const Inputs in = MakeInputs(p, InputKind::kConstant, 1);
    const Reference reference = ComputeReference(p, in);
    for (size_t i = 0; i < reference.out.size(); ++i) {
      EXPECT_NEAR(reference.out[i], Fp16ToFloat(in.v[i % 64]), 1e-14) << keys << " keys";
    }
  }
}

// Each key has a value of its own and a score of 0, so the first element of O
// tells which keys a query has seen.
std::vector<double> MeansSeen(const Problem& p, std::vector<double>& lse) {
  Inputs in = Zeros(p);
  for (int j = 0; j < p.seq_kv; ++j) in.v[j * 64] = FloatToFp16(static_cast<float>(j + 1));
  const Reference reference = ComputeReference(p, in);
  std::vector<double> means;
  for (int i = 0; i < p.seq_q; ++i) means.push_back(reference.out[i * 64]);
  lse = reference.lse;
  return means;
}

TEST(Reference, AlignsTheCausalMaskToTheBottomRight) {
  std::vector<double> lse;
  // Two queries, four keys: the first sees three, the last all four.
  EXPECT_EQ(MeansSeen({.seq_q = 2, .seq_kv = 4, .causal = true}, lse),
            (std::vector<double>{(1 + 2 + 3) / 3.0, (1 + 2 + 3 + 4) / 4.0}));
  EXPECT_DOUBLE_EQ(lse[0], std::log(3.0));
  EXPECT_DOUBLE_EQ(lse[1], std::log(4.0));
  EXPECT_EQ(MeansSeen({.seq_q = 3, .seq_kv = 3, .causal = true}, lse),
            (std::vector<double>{1, 1.5, 2}));
}

TEST(Reference, OfARowThatSeesNoKeyIsZeroWithALogSumExpOfMinusInfinity) {
  const Problem p = {.seq_q = 5, .seq_kv = 2, .causal = true};
  std::vector<double> lse;
  EXPECT_EQ(MeansSeen(p, lse), (std::vector<double>{0, 0, 0, 1, 1.5}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lse[i], -kInfinity) << i;
  EXPECT_EQ(lse[3], 0.0);

  const Reference random = ComputeReference(p, MakeInputs(p, InputKind::kLargeLogits, 1));
  for (int at = 0; at < 3 * 64; ++at) {
    EXPECT_EQ(random.out[at], 0.0);
    EXPECT_EQ(random.naive_out[at], 0.0f);
  }
}

// The value of a key is the number of its K/V head.
TEST(Reference, LetsNeighbouringQueryHeadsShareAKeyValueHead) {
  const Problem p = {.batch = 2, .heads_q = 6, .heads_kv = 2, .seq_q = 1, .seq_kv = 3};
  Inputs in = Zeros(p);
  for (int head = 0; head < 4; ++head) {
    for (int at = 0; at < 3 * 64; ++at) {
      in.v[head * 3 * 64 + at] = FloatToFp16(static_cast<float>(head + 1));
    }
  }
  const Reference reference = ComputeReference(p, in);
  std::vector<double> of_head;
  for (int head = 0; head < 12; ++head) of_head.push_back(reference.out[head * 64]);
  EXPECT_EQ(of_head, (std::vector<double>{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
}

TEST(Reference, AgreesWithTheDefinitionInExtendedPrecisionOnRandomShapes) {
  SplitMix64 random(1);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.Below(static_cast<uint64_t>(high - low + 1)));
  };
  for (int trial = 0; trial < 24; ++trial) {
    Problem p;
    p.batch = between(1, 2);
    p.heads_kv = between(1, 2);
    p.heads_q = p.heads_kv * between(1, 3);
    p.seq_q = between(1, 70);
    p.seq_kv = between(1, 70);
    p.causal = trial % 2 == 1;
    const NamedInputKind& kind = kInputKinds[static_cast<size_t>(trial) % std::size(kInputKinds)];
    const Inputs in = MakeInputs(p, kind.kind, MixSeed(1, static_cast<uint64_t>(trial)));
    const Reference reference = ComputeReference(p, in);
    const Definition definition = FromDefinition(p, in);
    const std::string what = Describe(p) + ", " + std::string(kind.name);
    ASSERT_EQ(reference.out.size(), definition.out.size()) << what;
    ASSERT_EQ(reference.lse.size(), definition.lse.size()) << what;
    for (size_t i = 0; i < reference.out.size(); ++i) {
      ASSERT_NEAR(reference.out[i], static_cast<double>(definition.out[i]), 1e-12) << what;
    }
    for (size_t i = 0; i < reference.lse.size(); ++i) {
      if (std::isinf(definition.lse[i])) {
        ASSERT_EQ(reference.lse[i], -kInfinity) << what;
      } else {
        ASSERT_NEAR(reference.lse[i], static_cast<double>(definition.lse[i]), 1e-12) << what;
      }
    }
  }
}

// Rows past the first chunk of work, which the small shapes never reach.
TEST(Reference, AgreesWithTheDefinitionOnRowsOfLaterChunks) {
  const Problem p = {.seq_q = 530, .seq_kv = 40, .causal = true};
  const Inputs in = MakeInputs(p, InputKind::kNormal, 2);
  const Reference reference = ComputeReference(p, in);
  const Definition definition = FromDefinition(p, in);
  for (size_t i = 0; i < reference.out.size(); ++i) {
    ASSERT_NEAR(reference.out[i], static_cast<double>(definition.out[i]), 1e-12) << i / 64;
  }
}

// Many keys are gone over in stretches, for several rows at a time. Sums keep the order of
// their terms for all that, so that a plain loop gives the same bits.
TEST(Reference, IsWhatAPlainLoopGivesOverManyKeys) {
  for (const bool causal : {false, true}) {
    const Problem p = {.seq_q = 21, .seq_kv = 1 + 2 * 256 + 3, .causal = causal};
    const Inputs in = MakeInputs(p, InputKind::kNormal, 9);
    const Reference reference = ComputeReference(p, in);
    const double scale = 1.0 / std::sqrt(64.0);
    for (int i = 0; i < p.seq_q; ++i) {
      const int keys = causal ? i + p.seq_kv - p.seq_q + 1 : p.seq_kv;
      std::vector<double> s(static_cast<size_t>(keys));
      double max = -kInfinity;
      for (int j = 0; j < keys; ++j) {
        for (int d = 0; d < 64; ++d) {
          s[j] += double{Fp16ToFloat(in.q[i * 64 + d])} * double{Fp16ToFloat(in.k[j * 64 + d])};
        }
        s[j] *= scale;
        max = std::max(max, s[j]);
      }
      double sum = 0;
      for (double& x : s) sum += x = std::exp(x - max);
      EXPECT_EQ(reference.lse[i], max + std::log(sum)) << "row " << i;
      for (int d = 0; d < 64; ++d) {
        double out = 0;
        for (int j = 0; j < keys; ++j) out += s[j] * double{Fp16ToFloat(in.v[j * 64 + d])};
        EXPECT_EQ(reference.out[i * 64 + d], out / sum) << "row " << i << ", column " << d;
      }
    }
  }
}

TEST(NaiveOutput, HoldsFp16NumbersNearTheReferenceButNotEqualToIt) {
  for (const bool causal : {false, true}) {
    const Problem p = {.heads_q = 2, .heads_kv = 2, .seq_q = 97, .seq_kv = 113, .causal = causal};
    const Reference reference = ComputeReference(p, MakeInputs(p, InputKind::kNormal, 3));
    double max_error = 0;
    double sum = 0;
    size_t off = 0;
    for (size_t i = 0; i < reference.out.size(); ++i) {
      ASSERT_EQ(RoundToFp16(reference.naive_out[i]), reference.naive_out[i]) << i;
      const double error = std::fabs(double{reference.naive_out[i]} - reference.out[i]);
      max_error = std::max(max_error, error);
      sum += error;
      // More than what rounding the exact result once would cost.
      off += double{reference.naive_out[i]} !=
             double{RoundToFp16(static_cast<float>(reference.out[i]))};
    }
    EXPECT_LT(max_error, 5e-3);
    EXPECT_GT(max_error, 1e-5);
    EXPECT_LT(sum / static_cast<double>(reference.out.size()), 5e-4);
    EXPECT_GT(static_cast<double>(off) / static_cast<double>(reference.out.size()), 0.1)
        << "its intermediates are not in fp16";
  }
}

// Two keys: s = 8 * k rounds to fp16, then weights, then the output.
TEST(NaiveOutput, RoundsEachIntermediateToFp16) {
  const Problem p = {.seq_q = 1, .seq_kv = 2};
  Inputs in = Zeros(p);
  in.q[0] = FloatToFp16(1.5f);
  in.q[1] = FloatToFp16(0x1p-9f);
  in.k[64] = FloatToFp16(5.125f);
  in.k[65] = FloatToFp16(1);
  in.v[0] = FloatToFp16(3);
  in.v[64] = FloatToFp16(-2);
  // 7.6875 + 2^-9 lies halfway between two fp16 numbers: the even one is 7.6875.
  const float score = 7.6875f / 8;
  ASSERT_EQ(RoundToFp16(7.6875f + 0x1p-9f), 7.6875f);
  ASSERT_EQ(RoundToFp16(score), score);
  const float sum = std::exp(-score) + 1.0f;
  const float low = RoundToFp16(std::exp(-score) / sum);
  const float high = RoundToFp16(1.0f / sum);
  EXPECT_EQ(ComputeReference(p, in).naive_out[0], RoundToFp16(low * 3 + high * -2));
}

// One head of few rows is the work of one thread, eight are spread over all.
TEST(Reference, OfAHeadIsTheSameBitsAloneAsAmongOthersOnSeveralThreads) {
  const Problem one = {.seq_q = 60, .seq_kv = 65};
  const Problem all = {.batch = 2, .heads_q = 4, .heads_kv = 4, .seq_q = 60, .seq_kv = 65};
  const Inputs in = MakeInputs(all, InputKind::kNormal, 4);
  const Reference together = ComputeReference(all, in);
  const auto slice = [](const auto& values, int64_t head, int64_t size) {
    return std::vector(values.begin() + head * size, values.begin() + (head + 1) * size);
  };
  for (int64_t head = 0; head < 8; ++head) {
    const Inputs alone = {slice(in.q, head, QueryElements(one)),
                          slice(in.k, head, KeyElements(one)), slice(in.v, head, KeyElements(one))};
    const Reference reference = ComputeReference(one, alone);
    EXPECT_EQ(reference.out, slice(together.out, head, QueryElements(one)));
    EXPECT_EQ(reference.lse, slice(together.lse, head, QueryRows(one)));
    EXPECT_EQ(reference.naive_out, slice(together.naive_out, head, QueryElements(one)));
  }
}

// Checks on the ladder's longest shape must stay bearable. CPU time, because
// other work on the machine must not fail the test.
TEST(Reference, OfTheLongShapeTakesLessThanAMinuteOfCpuTime) {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "without optimisation, or under a sanitizer, its time says nothing";
#endif
  const Problem p = {.heads_q = 8, .heads_kv = 8, .seq_q = 2048, .seq_kv = 2048};
  const Inputs in = MakeInputs(p, InputKind::kNormal, 5);
  const std::clock_t begin = std::clock();
  const Reference reference = ComputeReference(p, in);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 60);
  EXPECT_EQ(reference.out.size(), size_t{8} * 2048 * 64);
  EXPECT_TRUE(std::all_of(reference.lse.begin(), reference.lse.end(),
                          [](double x) { return std::isfinite(x); }));
}

TEST(SampleRows, AreNoneForASmallProblemWhichMeansAll) {
  EXPECT_TRUE(SampleRows({.seq_q = 33, .seq_kv = 65}, 1e10, 1).empty());
}

TEST(SampleRows, HoldTheFirstAndTheLastOfEachHeadAndAboutTheWantedFlops) {
  const Problem p = {.batch = 2, .heads_q = 3, .heads_kv = 3, .seq_q = 1000, .seq_kv = 512};
  const double wanted = Flops(p) / 10;
  const std::vector<int64_t> rows = SampleRows(p, wanted, 1);
  EXPECT_NEAR(static_cast<double>(rows.size()), 600, 2 * 6);  // two more a head
  for (size_t i = 1; i < rows.size(); ++i) ASSERT_LT(rows[i - 1], rows[i]);
  for (int head = 0; head < 6; ++head) {
    for (const int64_t row : {head * 1000, head * 1000 + 999}) {
      EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), row)) << row;
    }
  }
  EXPECT_EQ(SampleRows(p, wanted, 1), rows);
  EXPECT_NE(SampleRows(p, wanted, 2), rows);
}

}  // namespace
}  // namespace warpledger::sdpa
