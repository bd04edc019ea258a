// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/correctness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/kv_quantise.h"

namespace warpledger::ablations {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A problem with its reference, and what an ideal kernel would return: the
// exact result rounded once.
struct Case {
  sdpa::Problem problem;
  sdpa::Inputs inputs;
  sdpa::Reference reference;
  std::vector<sdpa::Bits16> out;
  std::vector<float> lse;

  explicit Case(const sdpa::Problem& p, sdpa::InputKind kind = sdpa::InputKind::kNormal,
                uint64_t seed = 1)
      : problem(p), inputs(sdpa::MakeInputs(p, kind, seed)) {
    reference = sdpa::ComputeReference(p, inputs);
    Return(reference.out);
    for (const double x : reference.lse) lse.push_back(static_cast<float>(x));
  }

  // Rounds these once.
  void Return(const std::vector<double>& exact) {
    out.clear();
    for (const double x : exact) {
      out.push_back(sdpa::FromFloat(problem.dtype, static_cast<float>(x)));
    }
  }
  Accuracy Judge() const { return JudgeAccuracy(reference, out, lse); }
};

constexpr sdpa::Problem kRagged = {
    .batch = 1, .heads_q = 2, .heads_kv = 2, .seq_q = 33, .seq_kv = 65};
// The first 30 rows see no key.
constexpr sdpa::Problem kMasked = {.seq_q = 40, .seq_kv = 10, .causal = true};
constexpr sdpa::Problem kManyKeys = {.seq_q = 8, .seq_kv = 4096};

TEST(JudgeAccuracy, PassesTheExactResultRoundedOnceOnAllKindsOfInputs) {
  for (const sdpa::Problem& problem :
       {kRagged, kMasked, kManyKeys, sdpa::Problem{.seq_q = 1, .seq_kv = 1},
        sdpa::Problem{.seq_q = 32, .seq_kv = 32}}) {
    for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
      const Accuracy accuracy = Case(problem, kind.kind).Judge();
      EXPECT_TRUE(accuracy.correct) << kind.name << ", " << problem.seq_q << " x " << problem.seq_kv
                                    << ": " << accuracy.reason;
      EXPECT_EQ(accuracy.reason, "");
      EXPECT_LE(accuracy.max_err, accuracy.max_err_limit);
      EXPECT_LE(accuracy.mean_err, accuracy.mean_err_limit);
      EXPECT_LE(accuracy.lse_err, accuracy.lse_limit);
    }
  }
}

TEST(JudgeAccuracy, PassesTheNaiveComputationItself) {
  for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
    Case c(kRagged, kind.kind);
    std::transform(c.reference.naive_out.begin(), c.reference.naive_out.end(), c.out.begin(),
                   sdpa::FloatToFp16);
    EXPECT_TRUE(c.Judge().correct) << kind.name << ": " << c.Judge().reason;
  }
}

// max|naive - ref| = 0.01 and mean 0.005, against a reference of at most 1.
TEST(JudgeAccuracy, HasTheLimitsThatItsRuleSays) {
  sdpa::Reference reference;
  reference.out = {1.0, -0.5};
  reference.naive_out = {1.0f, -0.49f};
  const std::vector<sdpa::Fp16> out = {sdpa::FloatToFp16(1.0f), sdpa::FloatToFp16(-0.5f)};
  const Accuracy accuracy = JudgeAccuracy(reference, out, {});
  EXPECT_TRUE(accuracy.correct) << accuracy.reason;
  EXPECT_EQ(accuracy.max_err, 0);
  EXPECT_NEAR(accuracy.max_err_limit, 2 * 0.01 + std::ldexp(1, -11), 1e-7);
  EXPECT_NEAR(accuracy.mean_err_limit, 1.5 * 0.005, 1e-7);
}

TEST(JudgeAccuracy, FailsOneNanOrInfinityAnywhere) {
  const Case good(kRagged);
  for (const size_t at : {size_t{0}, good.out.size() / 2, good.out.size() - 1}) {
    for (const float poison : {kNan, kInfinity, -kInfinity}) {
      Case c = good;
      c.out[at] = sdpa::FloatToFp16(poison);
      const Accuracy accuracy = c.Judge();
      EXPECT_FALSE(accuracy.correct) << poison << " at " << at;
      EXPECT_THAT(accuracy.reason, HasSubstr("element " + std::to_string(at))) << poison;
      EXPECT_FALSE(std::isfinite(accuracy.max_err)) << poison;
    }
  }
}

TEST(JudgeAccuracy, FailsOneElementThatIsOffByThreeTimesTheLimitAndNamesIt) {
  Case c(kRagged);
  const double limit = c.Judge().max_err_limit;
  for (const double sign : {-1.0, 1.0}) {
    Case off = c;
    off.out[1234] = sdpa::FloatToFp16(static_cast<float>(c.reference.out[1234] + sign * 3 * limit));
    const Accuracy accuracy = off.Judge();
    EXPECT_FALSE(accuracy.correct);
    EXPECT_THAT(accuracy.reason, HasSubstr("element 1234 "));
    EXPECT_NEAR(accuracy.max_err, 3 * limit, 0.5 * limit);
  }
}

TEST(JudgeAccuracy, GrantsTheLogSumExpWhatItsCallerAllowsAndNoMore) {
  Case c(kRagged);
  const double limit = c.Judge().lse_limit;
  constexpr double kAllowance = 1e-3;
  c.lse[7] += static_cast<float>(limit + 0.9 * kAllowance);
  EXPECT_FALSE(c.Judge().correct);
  EXPECT_TRUE(JudgeAccuracy(c.reference, c.out, c.lse, kAllowance).correct);
  c.lse[7] += static_cast<float>(0.2 * kAllowance);
  EXPECT_FALSE(JudgeAccuracy(c.reference, c.out, c.lse, kAllowance).correct);
}

// Each error is within the limit of the largest; only their mean gives it away.
TEST(JudgeAccuracy, FailsAnErrorOfTheMeanAlone) {
  Case c(kRagged);
  const double shift = 0.5 * c.Judge().max_err_limit;
  for (size_t i = 0; i < c.out.size(); ++i) {
    c.out[i] = sdpa::FloatToFp16(static_cast<float>(c.reference.out[i] + shift));
  }
  const Accuracy accuracy = c.Judge();
  EXPECT_LE(accuracy.max_err, accuracy.max_err_limit);
  EXPECT_GT(accuracy.mean_err, accuracy.mean_err_limit);
  EXPECT_FALSE(accuracy.correct);
  EXPECT_THAT(accuracy.reason, HasSubstr("mean error"));
}

// What fixed tolerances of 1e-2 let through: with many keys the outputs are all
// small, so that even nonsense is near them.
TEST(JudgeAccuracy, FailsAllZerosOnManyKeys) {
  Case c(kManyKeys);
  std::fill(c.out.begin(), c.out.end(), sdpa::Fp16{0});
  EXPECT_FALSE(c.Judge().correct);
}

TEST(JudgeAccuracy, FailsPlainAveragingOfVOnManyKeys) {
  Case c(kManyKeys);
  for (int d = 0; d < 64; ++d) {
    double sum = 0;
    for (int j = 0; j < 4096; ++j) sum += sdpa::Fp16ToFloat(c.inputs.v[j * 64 + d]);
    for (int i = 0; i < 8; ++i)
      c.out[i * 64 + d] = sdpa::FloatToFp16(static_cast<float>(sum / 4096));
  }
  const Accuracy accuracy = c.Judge();
  EXPECT_FALSE(accuracy.correct);
  EXPECT_LT(accuracy.max_err, 0.2) << "no longer the subtle error that this test is about";
}

TEST(JudgeAccuracy, FailsAWrongSoftmaxScale) {
  Case c(kRagged);
  sdpa::Inputs scaled = c.inputs;
  for (sdpa::Fp16& x : scaled.q) x = sdpa::FloatToFp16(sdpa::Fp16ToFloat(x) * 1.02f);
  c.Return(sdpa::ComputeReference(kRagged, scaled).out);
  EXPECT_FALSE(JudgeAccuracy(c.reference, c.out, {}).correct);
}

TEST(JudgeAccuracy, FailsAMissingLastKey) {
  Case c(kRagged);
  sdpa::Inputs without = c.inputs;  // a score of about 0 and a value of 0 in its place
  for (int head = 0; head < 2; ++head) {
    for (int d = 0; d < 64; ++d) without.v[(head * 65 + 64) * 64 + d] = 0;
  }
  c.Return(sdpa::ComputeReference(kRagged, without).out);
  EXPECT_FALSE(JudgeAccuracy(c.reference, c.out, {}).correct);
}

TEST(JudgeAccuracy, FailsALogSumExpThatIsOffByAHundredth) {
  for (const float error : {1e-2f, -1e-2f}) {
    Case c(kRagged);
    c.lse[17] += error;
    const Accuracy accuracy = c.Judge();
    EXPECT_FALSE(accuracy.correct);
    EXPECT_NEAR(accuracy.lse_err, 1e-2, 1e-5);
    EXPECT_THAT(accuracy.reason, HasSubstr("log-sum-exp of row 17 "));
  }
}

TEST(JudgeAccuracy, FailsALogSumExpAtTwiceItsLimitAndPassesAtHalf) {
  const Case good(kRagged);
  const double limit = good.Judge().lse_limit;
  ASSERT_GT(limit, 0);
  for (const double times : {0.5, 2.0}) {
    Case c = good;
    c.lse[17] = static_cast<float>(c.reference.lse[17] + times * limit);
    const Accuracy accuracy = c.Judge();
    EXPECT_EQ(accuracy.correct, times < 1) << times << ": " << accuracy.reason;
    EXPECT_NEAR(accuracy.lse_err, times * limit, 0.2 * limit);
  }
}

// A base-2 log-sum-exp is the classic slip.
TEST(JudgeAccuracy, FailsALogSumExpInUnitsOfLog2) {
  Case c(kRagged);
  for (float& x : c.lse) x *= 1.442695f;
  EXPECT_FALSE(c.Judge().correct);
}

TEST(JudgeAccuracy, WantsMinusInfinityExactlyWhereNoKeyIsSeen) {
  const Case good(kMasked);
  ASSERT_EQ(good.lse[0], -kInfinity);
  ASSERT_TRUE(std::isfinite(good.lse[39]));
  EXPECT_TRUE(good.Judge().correct) << good.Judge().reason;
  for (const float wrong : {0.0f, -1e30f, kInfinity, kNan}) {
    Case c = good;
    c.lse[0] = wrong;
    EXPECT_FALSE(c.Judge().correct) << wrong << " where no key is seen";
  }
  for (const float wrong : {-kInfinity, kInfinity, kNan}) {
    Case c = good;
    c.lse[39] = wrong;
    EXPECT_FALSE(c.Judge().correct) << wrong << " where keys are seen";
  }
}

TEST(JudgeAccuracy, WantsZerosWhereNoKeyIsSeen) {
  Case c(kMasked);
  ASSERT_EQ(c.out[0], 0);
  c.out[0] = sdpa::FloatToFp16(0.5f);
  EXPECT_FALSE(c.Judge().correct);
  c.out[0] = sdpa::FloatToFp16(kNan);  // 0 / 0
  EXPECT_FALSE(c.Judge().correct);
}

TEST(JudgeAccuracy, LeavesTheLogSumExpAloneWhereNoneIsGiven) {
  const Case c(kRagged);
  const Accuracy accuracy = JudgeAccuracy(c.reference, c.out, {});
  EXPECT_TRUE(accuracy.correct) << accuracy.reason;
  EXPECT_TRUE(std::isnan(accuracy.lse_err));
}

TEST(JudgeAccuracy, FailsOutputsOfAnotherSize) {
  const Case good(kRagged);
  Case c = good;
  c.out.pop_back();
  EXPECT_FALSE(c.Judge().correct);
  EXPECT_THAT(c.Judge().reason, HasSubstr(std::to_string(good.out.size())));
  c = good;
  c.lse.push_back(0);
  EXPECT_FALSE(c.Judge().correct);
  EXPECT_FALSE(JudgeAccuracy(good.reference, {}, {}).correct);
}

// --- A reference of some rows -----------------------------------------------------

// Two heads of 320 rows of 64: more elements than one chunk of the search for NaN.
constexpr sdpa::Problem kTall = {
    .batch = 1, .heads_q = 2, .heads_kv = 2, .seq_q = 320, .seq_kv = 32};

// As Case, with a reference of a sample of the rows.
Case Sampled(sdpa::Dtype dtype = sdpa::Dtype::kFp16) {
  sdpa::Problem problem = kTall;
  problem.dtype = dtype;
  Case c(problem);
  c.reference = sdpa::ComputeReference(problem, c.inputs, {0, 7, 319, 320, 500, 639});
  return c;
}

TEST(JudgeAccuracy, JudgesTheRowsThatASampleHoldsAsItWouldJudgeThemAlone) {
  for (const sdpa::Dtype dtype : {sdpa::Dtype::kFp16, sdpa::Dtype::kBf16}) {
    const Case c = Sampled(dtype);
    sdpa::Reference alone = c.reference;
    alone.rows.clear();
    std::vector<sdpa::Bits16> out;
    std::vector<float> lse;
    for (const int64_t row : c.reference.rows) {
      out.insert(out.end(), c.out.begin() + row * 64, c.out.begin() + (row + 1) * 64);
      lse.push_back(c.lse[row]);
    }
    const Accuracy sampled = c.Judge();
    const Accuracy expected = JudgeAccuracy(alone, out, lse);
    EXPECT_TRUE(sampled.correct) << sampled.reason;
    EXPECT_EQ(sampled.rows, 6);
    EXPECT_GT(sampled.mean_err, 0);
    EXPECT_EQ(sampled.max_err, expected.max_err);
    EXPECT_EQ(sampled.mean_err, expected.mean_err);
    EXPECT_EQ(sampled.max_err_limit, expected.max_err_limit);
    EXPECT_EQ(sampled.mean_err_limit, expected.mean_err_limit);
    EXPECT_EQ(sampled.lse_err, expected.lse_err);
    EXPECT_EQ(sampled.lse_limit, expected.lse_limit);
  }
}

TEST(JudgeAccuracy, NamesAnElementAndARowOfASampleByTheirPlaceInTheOutput) {
  const Case good = Sampled();
  for (const int64_t row : good.reference.rows) {
    Case c = good;
    c.out[row * 64 + 5] = sdpa::FloatToFp16(100.0f);
    EXPECT_THAT(c.Judge().reason, HasSubstr("element " + std::to_string(row * 64 + 5) + " is 100"));
    c = good;
    c.lse[row] += 1;
    EXPECT_THAT(c.Judge().reason, HasSubstr("log-sum-exp of row " + std::to_string(row) + " "));
  }
}

TEST(JudgeAccuracy, FailsOneNanOrInfinityInARowThatTheSampleLacks) {
  for (const sdpa::Dtype dtype : {sdpa::Dtype::kFp16, sdpa::Dtype::kBf16}) {
    const Case good = Sampled(dtype);
    for (const size_t at : {size_t{64}, size_t{4095}, size_t{4096}, good.out.size() - 65}) {
      for (const float poison : {kNan, kInfinity, -kInfinity}) {
        Case c = good;
        c.out[at] = sdpa::FromFloat(dtype, poison);
        const Accuracy accuracy = c.Judge();
        EXPECT_FALSE(accuracy.correct) << poison << " at " << at;
        EXPECT_THAT(accuracy.reason, HasSubstr("element " + std::to_string(at) + " "));
        EXPECT_TRUE(std::isnan(accuracy.max_err));
      }
      // The largest finite numbers are none of them.
      for (const int bits : {0, 0x8000}) {
        Case c = good;
        c.out[at] =
            static_cast<sdpa::Bits16>(bits | (dtype == sdpa::Dtype::kBf16 ? 0x7f7f : 0x7bff));
        EXPECT_TRUE(c.Judge().correct) << c.Judge().reason;
      }
    }
    Case c = good;
    c.lse[1] = kNan;
    EXPECT_THAT(c.Judge().reason, HasSubstr("log-sum-exp of row 1 is NaN"));
  }
}

TEST(JudgeAccuracy, WantsTheWholeOutputBesideASampledReference) {
  Case c = Sampled();
  c.out.resize(c.reference.out.size());
  EXPECT_THAT(c.Judge().reason, HasSubstr("the output has 384 elements, the problem 40960"));
  c = Sampled();
  c.lse.resize(6);
  EXPECT_THAT(c.Judge().reason, HasSubstr("the log-sum-exp has 6 elements, the problem 640 rows"));
}

// The rule of bf16 is that of its own naive computation: wider than fp16's, no wider than it.
TEST(JudgeAccuracy, HoldsBf16ToBf16s) {
  sdpa::Problem problem = kRagged;
  problem.dtype = sdpa::Dtype::kBf16;
  for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
    const Accuracy accuracy = Case(problem, kind.kind).Judge();
    EXPECT_TRUE(accuracy.correct) << kind.name << ": " << accuracy.reason;
  }
  Case bf16(problem);
  const double limit = bf16.Judge().max_err_limit;
  EXPECT_GT(limit, 3 * Case(kRagged).Judge().max_err_limit);
  bf16.out[5] = sdpa::FloatToBf16(static_cast<float>(bf16.reference.out[5] + 2 * limit));
  EXPECT_FALSE(bf16.Judge().correct);
}

// An output of fp16's bits is no output of bf16's.
TEST(JudgeAccuracy, ReadsTheOutputAsTheProblemsDtype) {
  sdpa::Problem problem = kRagged;
  problem.dtype = sdpa::Dtype::kBf16;
  Case bf16(problem);
  for (size_t i = 0; i < bf16.out.size(); ++i) {
    bf16.out[i] = sdpa::FloatToFp16(static_cast<float>(bf16.reference.out[i]));
  }
  EXPECT_FALSE(bf16.Judge().correct);
}

// --- Products in FP8 --------------------------------------------------------------

constexpr sdpa::Problem kWide = {.seq_q = 20, .seq_kv = 300, .head_dim = 128};

// What the wgmma family does in FP8, in plain steps: tiles of keys from the last to the first,
// an online softmax, P in E4M3 against the maximum so far and 2^8 times as large.
//   key_of: the key of V that P's key meets
template <typename KeyOf>
void RunTiledFp8(const sdpa::QuantisedKv& codes, const KeyOf& key_of, Case* c) {
  const sdpa::Problem& p = c->problem;
  constexpr int kTile = 128;
  const int dims = p.head_dim;
  for (int row = 0; row < p.seq_q; ++row) {
    std::vector<float> out(dims, 0.0f);
    float max = -kInfinity;
    float sum = 0;
    for (int first = (p.seq_kv - 1) / kTile * kTile; first >= 0; first -= kTile) {
      const int keys = std::min(kTile, p.seq_kv - first);
      std::vector<float> scores(keys);
      float new_max = max;
      for (int j = 0; j < keys; ++j) {
        double score = 0;
        for (int d = 0; d < dims; ++d) {
          score += sdpa::Dequantise(*codes.q, row * dims + d) *
                   sdpa::Dequantise(codes.k, (first + j) * dims + d);
        }
        scores[j] = static_cast<float>(score / std::sqrt(static_cast<double>(dims)));
        new_max = std::max(new_max, scores[j]);
      }
      const float rescale = std::exp(max - new_max);
      sum *= rescale;
      for (float& x : out) x *= rescale;
      max = new_max;
      for (int j = 0; j < keys; ++j) {
        const float prob = 256 * std::exp(scores[j] - max);
        sum += prob;
        const float rounded = sdpa::Fp8ToFloat(
            sdpa::kE4m3, sdpa::FloatToFp8(sdpa::kE4m3, prob, sdpa::Fp8Overflow::kSaturate));
        for (int d = 0; d < dims; ++d) {
          out[d] += rounded *
                    static_cast<float>(sdpa::Dequantise(codes.v, (first + key_of(j)) * dims + d));
        }
      }
    }
    for (int d = 0; d < dims; ++d) {
      c->out[row * dims + d] = sdpa::FromFloat(p.dtype, out[d] / sum);
    }
    c->lse[row] = max + std::log(sum / 256);
  }
}

TEST(JudgeAccuracy, PassesTiledFp8OnAllKindsOfInputsAndNotWithKeysOutOfOrder) {
  for (const sdpa::NamedInputKind& kind : sdpa::kInputKinds) {
    Case c(kWide, kind.kind);
    const sdpa::Inputs quantised = sdpa::WithQuantisedKv(
        kWide, c.inputs, {.scheme = {.format = sdpa::KvFormat::kE4m3}, .queries = true});
    c.reference = sdpa::ComputeReference(kWide, quantised);
    RunTiledFp8(
        *quantised.quantised, [](int key) { return key; }, &c);
    const Accuracy accuracy = c.Judge();
    EXPECT_TRUE(accuracy.correct) << kind.name << ": " << accuracy.reason;
    if (kind.kind == sdpa::InputKind::kConstant) continue;  // any key is as good
    // P's rounding is most of the error there, so the limit is hardly wider than it must be.
    if (kind.kind == sdpa::InputKind::kNormal) {
      EXPECT_GT(accuracy.mean_err, accuracy.mean_err_limit / 3);
    }
    const auto swapped = [](int key) { return key < 32 ? key ^ 2 : key; };
    RunTiledFp8(*quantised.quantised, swapped, &c);
    EXPECT_FALSE(c.Judge().correct) << kind.name;
  }
}

// Codes hide what their rounding does, and no more: a factor of 1.05 on O does not pass.
TEST(JudgeAccuracy, PassesOutputsInE4m3AndNotThoseOfAnotherScale) {
  Case c(kWide);
  const sdpa::Inputs quantised = sdpa::WithQuantisedKv(kWide, c.inputs,
                                                       {.quantised = true,
                                                        .scheme = {.format = sdpa::KvFormat::kE4m3},
                                                        .queries = true,
                                                        .output = true});
  c.reference = sdpa::ComputeReference(kWide, quantised);
  RunTiledFp8(
      *quantised.quantised, [](int key) { return key; }, &c);
  const std::vector<sdpa::Fp16> exact = c.out;
  const float scale = c.reference.out_scale;
  for (const auto& [factor, passes] : {std::pair{1.0f, true}, {1.05f, false}, {0.95f, false}}) {
    for (size_t i = 0; i < exact.size(); ++i) {
      const float number = factor * sdpa::Fp16ToFloat(exact[i]) / scale;
      const uint8_t code = sdpa::FloatToFp8(sdpa::kE4m3, number, sdpa::Fp8Overflow::kSaturate);
      c.out[i] = sdpa::FloatToFp16(scale * sdpa::Fp8ToFloat(sdpa::kE4m3, code));
    }
    const Accuracy accuracy = c.Judge();
    EXPECT_EQ(accuracy.correct, passes) << factor << ": " << accuracy.reason;
  }
}

// The log-sum-exp may be off by what rounding scores costs, and by no more.
TEST(JudgeAccuracy, HoldsTheLogSumExpOfFp8ProductsToRoundedScores) {
  Case c(kWide);
  const sdpa::Inputs quantised = sdpa::WithQuantisedKv(
      kWide, c.inputs, {.scheme = {.format = sdpa::KvFormat::kE4m3}, .queries = true});
  c.reference = sdpa::ComputeReference(kWide, quantised);
  RunTiledFp8(
      *quantised.quantised, [](int key) { return key; }, &c);
  const double limit = c.Judge().lse_limit;
  EXPECT_GT(limit, 1e-5);
  EXPECT_LT(limit, 1e-2);
  c.lse[3] += static_cast<float>(2 * limit);
  EXPECT_FALSE(c.Judge().correct);
}

}  // namespace
}  // namespace warpledger::ablations
