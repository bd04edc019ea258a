// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/projection.h"

#include <algorithm>
#include <cmath>

#include "ablations/subjects/sdpa/correctness.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/problem/inputs.h"

namespace warpledger::sdpa {
namespace {

constexpr Problem kGrouped = {.batch = 2,
                              .heads_q = 4,
                              .heads_kv = 2,
                              .seq_q = 19,
                              .seq_kv = 19,
                              .head_dim = 16,
                              .causal = true,
                              .embed_dim = 24};
constexpr Problem kMission = {.batch = 1,
                              .heads_q = 2,
                              .heads_kv = 2,
                              .seq_q = 64,
                              .seq_kv = 64,
                              .head_dim = 64,
                              .embed_dim = 128};

Fp16 Half(double x) { return FloatToFp16(static_cast<float>(x)); }

// A row of Q, K and V from their definition in extended precision. W's rows are counted
// through: heads of Q, of K, of V.
std::vector<long double> RowFromDefinition(const Problem& p, const Inputs& in, int b, int s,
                                           bool normalise) {
  const Fp16* x = &in.x[(b * p.seq_q + s) * p.embed_dim];
  long double mean = 0;
  long double variance = 0;
  for (int e = 0; e < p.embed_dim; ++e) mean += Fp16ToFloat(x[e]) / (1.0L * p.embed_dim);
  for (int e = 0; e < p.embed_dim; ++e) {
    variance += std::pow(Fp16ToFloat(x[e]) - mean, 2.0L) / p.embed_dim;
  }
  std::vector<long double> row(ProjectionRows(p));
  for (size_t n = 0; n < row.size(); ++n) {
    for (int e = 0; e < p.embed_dim; ++e) {
      const long double normal = (Fp16ToFloat(x[e]) - mean) / std::sqrt(variance + 1e-5L);
      const long double value = normalise
                                    ? normal * Fp16ToFloat(in.gamma[e]) + Fp16ToFloat(in.beta[e])
                                    : 1.0L * Fp16ToFloat(x[e]);
      row[n] += value * Fp16ToFloat(in.w[n * p.embed_dim + e]);
    }
  }
  return row;
}

template <typename T>
struct Element {
  const std::vector<T>& tensor;
  int heads;
  T operator()(const Problem& p, int b, int h, int s, int d) const {
    return tensor[((b * heads + h) * p.seq_q + s) * p.head_dim + d];
  }
};

// Calls check(column of the product, element of Q, K or V) for row s of batch b.
template <typename T, typename Check>
void ForEachOfRow(const Problem& p, const Projected<T>& projected, int b, int s, Check check) {
  int n = 0;
  for (const Element<T>& element :
       {Element<T>{projected.q, p.heads_q}, Element<T>{projected.k, p.heads_kv},
        Element<T>{projected.v, p.heads_kv}}) {
    for (int h = 0; h < element.heads; ++h) {
      for (int d = 0; d < p.head_dim; ++d) check(n++, element(p, b, h, s, d));
    }
  }
  EXPECT_EQ(n, ProjectionRows(p));
}

TEST(ProjectExact, OfTwoFeaturesIsWhatOneWorksOutByHand) {
  const Problem p = {.head_dim = 1, .embed_dim = 2};
  Inputs in;
  in.x = {Half(1), Half(3)};  // normalised: -1 and 1 over sqrt(1 + 1e-5)
  in.gamma = {Half(2), Half(1)};
  in.beta = {Half(0), Half(0.5)};
  in.w = {Half(1), Half(0), Half(0), Half(1), Half(1), Half(1)};
  const Projected<double> exact = ProjectExact(p, in);
  const double unit = 1 / std::sqrt(1 + 1e-5);
  EXPECT_DOUBLE_EQ(exact.q[0], -2 * unit);
  EXPECT_DOUBLE_EQ(exact.k[0], unit + 0.5);
  EXPECT_DOUBLE_EQ(exact.v[0], -2 * unit + unit + 0.5);
}

TEST(ProjectExact, AgreesWithTheDefinitionInExtendedPrecision) {
  const Inputs in = MakeInputs(kGrouped, InputKind::kNormal, 3);
  const Projected<double> exact = ProjectExact(kGrouped, in);
  for (int b = 0; b < kGrouped.batch; ++b) {
    for (int s = 0; s < kGrouped.seq_q; ++s) {
      const std::vector<long double> row = RowFromDefinition(kGrouped, in, b, s, true);
      ForEachOfRow(kGrouped, exact, b, s, [&](int n, double value) {
        EXPECT_NEAR(value, static_cast<double>(row[n]), 1e-12) << b << " " << s << " " << n;
      });
    }
  }
}

// A row that is moved and stretched by powers of two, so that fp16 rounds nothing anew.
TEST(ProjectExact, TakesARowsMeanAndWidthOutAgain) {
  Inputs in = MakeInputs(kGrouped, InputKind::kNormal, 4);
  for (Fp16& x : in.x) x = Half(std::round(64 * Fp16ToFloat(x)) / 64);
  Inputs moved = in;
  for (Fp16& x : moved.x) x = Half(2 * Fp16ToFloat(x) + 4);
  const Projected<double> a = ProjectExact(kGrouped, in);
  const Projected<double> b = ProjectExact(kGrouped, moved);
  // Epsilon alone is not stretched along.
  for (size_t i = 0; i < a.q.size(); ++i) EXPECT_NEAR(a.q[i], b.q[i], 1e-3);
  EXPECT_NE(a.q, b.q);
}

TEST(ProjectNaive, HoldsWhatRoundingEachTensorLeavesOfTheTruth) {
  const Inputs in = MakeInputs(kGrouped, InputKind::kNormal, 5);
  const Projected<double> exact = ProjectExact(kGrouped, in);
  const Projected<Fp16> naive = ProjectNaive(kGrouped, in);
  double worst = 0;
  for (int b = 0; b < kGrouped.batch; ++b) {
    for (int s = 0; s < kGrouped.seq_q; ++s) {
      std::vector<double> truth;
      ForEachOfRow(kGrouped, exact, b, s, [&](int, double value) { truth.push_back(value); });
      ForEachOfRow(kGrouped, naive, b, s, [&](int n, Fp16 value) {
        worst = std::max(worst, std::fabs(Fp16ToFloat(value) - truth[n]));
      });
    }
  }
  // Elements of size 1 to 4 have steps of 2^-10 to 2^-8.
  EXPECT_GT(worst, 1e-4);
  EXPECT_LT(worst, 1e-2);
}

TEST(MakeInputs, GiveProjectionsThatAreAboutStandardNormalFromRowsThatAreNot) {
  const Inputs in = MakeInputs(kMission, InputKind::kNormal, 6);
  EXPECT_TRUE(in.q.empty() && in.k.empty() && in.v.empty());
  EXPECT_EQ(in.x.size(), 64u * 128);
  EXPECT_EQ(in.w.size(), 3u * 2 * 64 * 128);
  const Projected<double> exact = ProjectExact(kMission, in);
  for (const std::vector<double>* tensor : {&exact.q, &exact.k, &exact.v}) {
    double squares = 0;
    for (const double value : *tensor) squares += value * value;
    EXPECT_NEAR(squares / static_cast<double>(tensor->size()), 1, 0.2);
  }
  double largest_mean = 0;
  for (int s = 0; s < kMission.seq_q; ++s) {
    double mean = 0;
    for (int e = 0; e < kMission.embed_dim; ++e) {
      mean += Fp16ToFloat(in.x[s * kMission.embed_dim + e]) / kMission.embed_dim;
    }
    largest_mean = std::max(largest_mean, std::fabs(mean));
  }
  EXPECT_GT(largest_mean, 1) << "a layernorm that is left out must show";
}

TEST(MakeInputs, OfKindConstantMakeEveryKeyAndEveryValueTheSame) {
  const Inputs in = MakeInputs(kMission, InputKind::kConstant, 7);
  const Reference reference = ComputeReference(kMission, in);
  const Projected<double> exact = ProjectExact(kMission, in);
  for (int s = 1; s < kMission.seq_q; ++s) {
    for (int d = 0; d < kMission.head_dim; ++d) {
      EXPECT_NEAR(reference.out[s * kMission.head_dim + d], exact.v[d], 1e-12);
    }
  }
}

// --- The reference of SDPA behind a projection ---------------------------------

// That of Q, K and V in fp16, without the projection that they come from.
Reference ReferenceOf(const Problem& problem, const Projected<Fp16>& from) {
  Problem given = problem;
  given.embed_dim = 0;
  Inputs inputs;
  inputs.q = from.q;
  inputs.k = from.k;
  inputs.v = from.v;
  return ComputeReference(given, inputs);
}

TEST(Reference, BehindAProjectionIsThatOfTheProjectedTensors) {
  const Inputs in = MakeInputs(kGrouped, InputKind::kNormal, 8);
  const Reference behind = ComputeReference(kGrouped, in);
  const Reference of_rounded = ReferenceOf(kGrouped, ProjectNaive(kGrouped, in));
  // The naive computation goes on from its rounded tensors, and so does the rounded LSE.
  EXPECT_EQ(behind.naive_out, of_rounded.naive_out);
  EXPECT_EQ(behind.rounded_lse, of_rounded.lse);
  EXPECT_TRUE(of_rounded.rounded_lse.empty());
  // The truth does not: it differs by about what rounding is worth.
  double worst = 0;
  for (size_t i = 0; i < behind.out.size(); ++i) {
    worst = std::max(worst, std::fabs(behind.out[i] - of_rounded.out[i]));
  }
  EXPECT_GT(worst, 1e-5);
  EXPECT_LT(worst, 1e-2);
}

TEST(Reference, OfASampleOfRowsIsThatOfAllRowsThere) {
  const Inputs in = MakeInputs(kGrouped, InputKind::kNormal, 9);
  const Reference all = ComputeReference(kGrouped, in);
  const std::vector<int64_t> rows = {0, 5, 18, 19, 40, 151};
  const Reference some = ComputeReference(kGrouped, in, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(some.lse[i], all.lse[rows[i]]);
    EXPECT_EQ(some.rounded_lse[i], all.rounded_lse[rows[i]]);
    for (int d = 0; d < kGrouped.head_dim; ++d) {
      EXPECT_EQ(some.out[i * kGrouped.head_dim + d], all.out[rows[i] * kGrouped.head_dim + d]);
    }
  }
}

struct Candidate {
  std::vector<Fp16> out;
  std::vector<float> lse;
};

// What a kernel would return that goes on, without an error of its own, from fp16 Q, K
// and V.
Candidate Attend(const Problem& problem, const Projected<Fp16>& from) {
  const Reference reference = ReferenceOf(problem, from);
  Candidate candidate;
  for (const double value : reference.out) candidate.out.push_back(Half(value));
  for (const double value : reference.lse) candidate.lse.push_back(static_cast<float>(value));
  return candidate;
}

ablations::Accuracy Judged(const Reference& reference, const Candidate& candidate) {
  return ablations::JudgeAccuracy(reference, candidate.out, candidate.lse);
}

TEST(JudgeAccuracy, PassesAProjectionThatIsRoundedToFp16OnAllKindsOfInputs) {
  for (const Problem& problem : {kGrouped, kMission}) {
    for (const NamedInputKind& kind : kInputKinds) {
      const Inputs in = MakeInputs(problem, kind.kind, 10);
      const Reference reference = ComputeReference(problem, in);
      const ablations::Accuracy accuracy =
          Judged(reference, Attend(problem, ProjectNaive(problem, in)));
      EXPECT_TRUE(accuracy.correct) << kind.name << ": " << accuracy.reason;
    }
  }
}

TEST(JudgeAccuracy, FailsAProjectionWithoutLayernorm) {
  const Inputs in = MakeInputs(kMission, InputKind::kNormal, 11);
  const Reference reference = ComputeReference(kMission, in);
  Projected<Fp16> raw = ProjectNaive(kMission, in);
  for (int s = 0; s < kMission.seq_q; ++s) {
    const std::vector<long double> row = RowFromDefinition(kMission, in, 0, s, false);
    size_t n = 0;
    for (std::vector<Fp16>* tensor : {&raw.q, &raw.k, &raw.v}) {
      for (int h = 0; h < kMission.heads_q; ++h) {
        for (int d = 0; d < kMission.head_dim; ++d) {
          (*tensor)[(h * kMission.seq_q + s) * kMission.head_dim + d] =
              Half(static_cast<double>(row[n++]));
        }
      }
    }
  }
  EXPECT_FALSE(Judged(reference, Attend(kMission, raw)).correct);
}

TEST(JudgeAccuracy, FailsAProjectionWithKAndVExchanged) {
  const Inputs in = MakeInputs(kMission, InputKind::kNormal, 12);
  const Reference reference = ComputeReference(kMission, in);
  Projected<Fp16> swapped = ProjectNaive(kMission, in);
  std::swap(swapped.k, swapped.v);
  EXPECT_FALSE(Judged(reference, Attend(kMission, swapped)).correct);
}

// The rounding of Q and K loosens the limit of the LSE; it must not swallow a hundredth.
TEST(JudgeAccuracy, StillFailsALogSumExpBehindAProjectionThatIsOffByAHundredth) {
  const Inputs in = MakeInputs(kMission, InputKind::kNormal, 13);
  const Reference reference = ComputeReference(kMission, in);
  Candidate candidate = Attend(kMission, ProjectNaive(kMission, in));
  candidate.lse[77] += 0.01f;
  const ablations::Accuracy accuracy = Judged(reference, candidate);
  EXPECT_FALSE(accuracy.correct);
  EXPECT_LT(accuracy.lse_limit, 0.005);
}

}  // namespace
}  // namespace warpledger::sdpa
