// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/kv_quantise.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::sdpa {
namespace {

constexpr Problem kProblem = {2, 4, 2, 33, 65, 64, false};
constexpr KvFormat kFormats[] = {KvFormat::kUint8, KvFormat::kE4m3, KvFormat::kE5m2};
constexpr ScaleScope kScopes[] = {ScaleScope::kTensor, ScaleScope::kHead, ScaleScope::kBlock};

// Half a step at the largest magnitude that shares a scale, in parts of it.
double HalfStep(KvFormat format) {
  switch (format) {
    case KvFormat::kUint8:
      return 0.5 / 127;
    case KvFormat::kE4m3:
      return 1.0 / 16 / 1.75;  // the largest numbers are 256 to 448 in steps of 32
    case KvFormat::kE5m2:
      return 1.0 / 8 / 1.75;
  }
  return 0;
}

TEST(Quantise, KeepsEachValueToHalfAStepAtTheLargestMagnitude) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kOutliers, 1);
  for (const KvFormat format : kFormats) {
    for (const ScaleScope scope : kScopes) {
      const QuantisedTensor q = Quantise(kProblem, inputs.k, {format, scope, 32});
      ASSERT_EQ(q.codes.size(), inputs.k.size());
      const int per_head = scope == ScaleScope::kBlock ? 3 : 1;  // 65 keys: 32, 32, 1
      ASSERT_EQ(q.scales.size(), static_cast<size_t>(4 * per_head));
      for (size_t at = 0; at < inputs.k.size(); ++at) {
        const size_t row = at / 64;
        const size_t scale =
            row / 65 * per_head + (scope == ScaleScope::kBlock ? row % 65 / 32 : 0);
        const double largest = double{q.scales[scale]} * LargestNumber(format);
        const double value = Fp16ToFloat(inputs.k[at]);
        ASSERT_LE(std::fabs(value), largest * (1 + 1e-6));
        ASSERT_LE(std::fabs(Dequantise(q, static_cast<int64_t>(at)) - value),
                  largest * HalfStep(format) * (1 + 1e-5))
            << at;
      }
    }
  }
}

TEST(Quantise, ReachesTheLargestNumberInEveryGroupAndNoSpecialCode) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 2);
  for (const KvFormat format : kFormats) {
    const QuantisedTensor q = Quantise(kProblem, inputs.v, {format, ScaleScope::kBlock, 32});
    float largest = 0;
    for (const uint8_t code : q.codes) {
      const float number = CodeNumber(format, code);
      ASSERT_TRUE(std::isfinite(number));
      largest = std::max(largest, std::fabs(number));
    }
    EXPECT_EQ(largest, LargestNumber(format));
  }
}

TEST(Quantise, FinerScalesNeverRaiseAScale) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kOutliers, 3);
  const auto scales = [&](ScaleScope scope) {
    return Quantise(kProblem, inputs.k, {KvFormat::kE4m3, scope, 32}).scales;
  };
  const std::vector<float> tensor = scales(ScaleScope::kTensor);
  const std::vector<float> head = scales(ScaleScope::kHead);
  const std::vector<float> block = scales(ScaleScope::kBlock);
  for (size_t h = 0; h < head.size(); ++h) {
    EXPECT_LE(head[h], tensor[h]);
    EXPECT_EQ(tensor[h], tensor[0]);
    EXPECT_EQ(*std::max_element(&block[3 * h], &block[3 * h] + 3), head[h]);
  }
}

// 0 / 0 would be NaN: an all-zero block, as of padding, is zeros.
TEST(Quantise, KeepsZerosZero) {
  std::vector<Bits16> zeros(4 * 65 * 64, 0);
  for (const KvFormat format : kFormats) {
    for (const ScaleScope scope : kScopes) {
      const QuantisedTensor q = Quantise(kProblem, zeros, {format, scope, 32});
      for (size_t at = 0; at < zeros.size(); ++at) {
        ASSERT_EQ(Dequantise(q, static_cast<int64_t>(at)), 0.0);
      }
    }
  }
}

// A block of padding must not take the precision of the head's other blocks.
TEST(Quantise, GivesAZeroBlockTheHeadsScale) {
  Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 7);
  std::fill_n(inputs.k.begin(), 32 * 64, Bits16{0});
  const QuantisedTensor q = Quantise(kProblem, inputs.k, {KvFormat::kE4m3, ScaleScope::kBlock, 32});
  EXPECT_EQ(q.scales[0], std::max(q.scales[1], q.scales[2]));
}

TEST(Quantise, ReadsBf16AsBf16) {
  Problem problem = kProblem;
  problem.dtype = Dtype::kBf16;
  const Inputs inputs = MakeInputs(problem, InputKind::kNormal, 4);
  const QuantisedTensor q = Quantise(problem, inputs.k, {KvFormat::kUint8, ScaleScope::kHead});
  for (size_t at = 0; at < inputs.k.size(); ++at) {
    ASSERT_NEAR(Dequantise(q, static_cast<int64_t>(at)), Bf16ToFloat(inputs.k[at]), 0.03);
  }
}

// A head's largest scale times a block's part of it is the block's scale.
TEST(LaunchScales, PutTheHeadsLargestBeforeItsBlocksParts) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kOutliers, 6);
  const QuantisedTensor head = Quantise(kProblem, inputs.k, {KvFormat::kE4m3, ScaleScope::kHead});
  EXPECT_EQ(LaunchScaleStride(head, ScaleScope::kHead), 1);
  EXPECT_EQ(LaunchScales(head, ScaleScope::kHead), head.scales);
  const QuantisedTensor block =
      Quantise(kProblem, inputs.k, {KvFormat::kE4m3, ScaleScope::kBlock, 32});
  const int stride = LaunchScaleStride(block, ScaleScope::kBlock);
  ASSERT_EQ(stride, 4);
  const std::vector<float> scales = LaunchScales(block, ScaleScope::kBlock);
  ASSERT_EQ(scales.size(), 4u * stride);
  for (int h = 0; h < 4; ++h) {
    EXPECT_EQ(scales[h * stride], head.scales[h]);
    for (int b = 0; b < 3; ++b) {
      const float part = scales[h * stride + 1 + b];
      EXPECT_LE(part, 1.0f);
      EXPECT_NEAR(part * scales[h * stride], block.scales[h * 3 + b],
                  block.scales[h * 3 + b] * 0x1p-22);
    }
  }
}

TEST(OutputScale, IsTheLeastPowerOfTwoThatHoldsV) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kOutliers, 5);
  for (const ScaleScope scope : {ScaleScope::kTensor, ScaleScope::kHead, ScaleScope::kBlock}) {
    const QuantisedTensor v = Quantise(kProblem, inputs.v, {KvFormat::kE4m3, scope, 32});
    double largest = 0;
    for (int64_t at = 0; at < KeyElements(kProblem); ++at) {
      largest = std::max(largest, std::fabs(Dequantise(v, at)));
    }
    const float scale = OutputScale(v);
    EXPECT_EQ(std::log2(scale), std::floor(std::log2(scale)));
    EXPECT_GE(448 * scale, largest * (1 - 0x1p-20));
    EXPECT_LT(448 * scale / 2, largest);
  }
}

TEST(Reference, RoundsOutputsToCodesWhereTheStorageSaysSo) {
  KvStorage storage = {.quantised = true, .scheme = {KvFormat::kE4m3}, .queries = true};
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  const Reference halves = ComputeReference(kProblem, WithQuantisedKv(kProblem, inputs, storage));
  EXPECT_EQ(halves.out_scale, 0);
  storage.output = true;
  const Reference codes = ComputeReference(kProblem, WithQuantisedKv(kProblem, inputs, storage));
  EXPECT_EQ(codes.out, halves.out);
  EXPECT_EQ(codes.lse, halves.lse);
  ASSERT_GT(codes.out_scale, 0);
  EXPECT_NE(codes.naive_out, halves.naive_out);
  for (size_t i = 0; i < codes.naive_out.size(); ++i) {
    const float number = codes.naive_out[i] / codes.out_scale;
    EXPECT_EQ(Fp8ToFloat(kE4m3, FloatToFp8(kE4m3, number, Fp8Overflow::kSpecial)), number);
    // Half a step of four bits, or of the smallest numbers, and of the fp16 that was rounded first.
    const float step = std::max(std::fabs(halves.naive_out[i]) / 8, codes.out_scale * 0x1p-9f);
    EXPECT_LE(std::fabs(codes.naive_out[i] - halves.naive_out[i]), step * 0.51f);
  }
}

TEST(Reference, OfQuantisedKvIsThatOfTheDequantisedValues) {
  const Inputs inputs = MakeInputs(kProblem, InputKind::kNormal, 5);
  for (const KvFormat format : kFormats) {
    Inputs quantised =
        WithQuantisedKv(kProblem, inputs, {.scheme = {format, ScaleScope::kBlock, 32}});
    // Scales that are powers of two leave the dequantised values fp16 numbers.
    for (QuantisedTensor* tensor : {&quantised.quantised->k, &quantised.quantised->v}) {
      for (float& scale : tensor->scales) scale = std::exp2(std::floor(std::log2(scale)));
    }
    Inputs plain = inputs;
    for (size_t at = 0; at < plain.k.size(); ++at) {
      const auto i = static_cast<int64_t>(at);
      plain.k[at] = FloatToFp16(static_cast<float>(Dequantise(quantised.quantised->k, i)));
      plain.v[at] = FloatToFp16(static_cast<float>(Dequantise(quantised.quantised->v, i)));
    }
    const Reference ours = ComputeReference(kProblem, quantised);
    const Reference same = ComputeReference(kProblem, plain);
    EXPECT_EQ(ours.naive_out, same.naive_out);
    EXPECT_EQ(ours.out, same.out);
    EXPECT_EQ(ours.lse, same.lse);
    EXPECT_NE(ours.out, ComputeReference(kProblem, inputs).out);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
