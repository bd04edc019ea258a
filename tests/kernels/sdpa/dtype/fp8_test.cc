// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/dtype/fp8.h"

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/bf16.h"
#include "kernels/sdpa/dtype/fp16.h"

namespace warpledger::sdpa {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Named {
  const char* name;
  Fp8Format format;
  int exponent_bits;
};
const Named kFormats[] = {{"e4m3", kE4m3, 4}, {"e5m2", kE5m2, 5}};

TEST(Fp8, HasTheLargestAndSmallestNumbersOfThePaper) {
  EXPECT_EQ(LargestFp8(kE4m3), 448.0f);
  EXPECT_EQ(LargestFp8(kE5m2), 57344.0f);
  EXPECT_EQ(Fp8ToFloat(kE4m3, 1), 0x1p-9f);
  EXPECT_EQ(Fp8ToFloat(kE5m2, 1), 0x1p-16f);
  EXPECT_EQ(Fp8ToFloat(kE4m3, 0x38), 1.0f);
  EXPECT_EQ(Fp8ToFloat(kE5m2, 0x3c), 1.0f);
}

TEST(Fp8, HasTwoNansAndNoInfinityInE4m3AndSixAndTwoInE5m2) {
  for (const auto& [name, format, exponent_bits] : kFormats) {
    int nans = 0;
    int infinities = 0;
    for (int code = 0; code < 256; ++code) {
      const float value = Fp8ToFloat(format, static_cast<uint8_t>(code));
      nans += std::isnan(value);
      infinities += std::isinf(value);
      EXPECT_EQ(std::signbit(value), code >= 128) << name << " " << code;
    }
    EXPECT_EQ(nans, exponent_bits == 4 ? 2 : 6) << name;
    EXPECT_EQ(infinities, exponent_bits == 4 ? 0 : 2) << name;
  }
}

TEST(Fp8, IsASubsetOfFp16) {
  for (const auto& [name, format, exponent_bits] : kFormats) {
    for (int code = 0; code < 256; ++code) {
      const float value = Fp8ToFloat(format, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      EXPECT_EQ(RoundToFp16(value), value) << name << " " << code;
    }
  }
}

TEST(FloatToFp8, GivesEachNumberBack) {
  for (const auto& [name, format, exponent_bits] : kFormats) {
    for (int code = 0; code < 256; ++code) {
      const float value = Fp8ToFloat(format, static_cast<uint8_t>(code));
      if (std::isnan(value) || std::isinf(value)) continue;
      EXPECT_EQ(FloatToFp8(format, value, Fp8Overflow::kSaturate), code) << name;
      EXPECT_EQ(FloatToFp8(format, value, Fp8Overflow::kSpecial), code) << name;
    }
  }
}

TEST(FloatToFp8, RoundsToTheNearestAndTiesToEvenBetweenAllNeighbours) {
  for (const auto& [name, format, exponent_bits] : kFormats) {
    for (int code = 0; code < format.largest; ++code) {
      const double below = Fp8ToFloat(format, static_cast<uint8_t>(code));
      const double above = Fp8ToFloat(format, static_cast<uint8_t>(code + 1));
      const auto midpoint = static_cast<float>((below + above) / 2);
      const int even = code % 2 == 0 ? code : code + 1;
      for (const Fp8Overflow overflow : {Fp8Overflow::kSaturate, Fp8Overflow::kSpecial}) {
        EXPECT_EQ(FloatToFp8(format, midpoint, overflow), even) << name << " " << code;
        EXPECT_EQ(FloatToFp8(format, std::nextafter(midpoint, 0.0f), overflow), code);
        EXPECT_EQ(FloatToFp8(format, std::nextafter(midpoint, kInfinity), overflow), code + 1);
        EXPECT_EQ(FloatToFp8(format, -midpoint, overflow), even | 128);
      }
    }
  }
}

TEST(FloatToFp8, SaturatesOrGivesTheSpecialCodeBeyondTheRange) {
  // A step of 32 ends E4M3: up to half of it the largest number is the nearest.
  EXPECT_EQ(FloatToFp8(kE4m3, 464.0f, Fp8Overflow::kSpecial), 0x7e);
  for (const float value : {464.1f, 480.0f, 895.9f, 896.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(FloatToFp8(kE4m3, value, Fp8Overflow::kSaturate), 0x7e) << value;
    EXPECT_EQ(FloatToFp8(kE4m3, value, Fp8Overflow::kSpecial), 0x7f) << value;
    EXPECT_EQ(FloatToFp8(kE4m3, -value, Fp8Overflow::kSpecial), 0xff) << value;
  }
  for (const float value : {61440.0f, 65536.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(FloatToFp8(kE5m2, value, Fp8Overflow::kSaturate), 0x7b) << value;
    EXPECT_EQ(FloatToFp8(kE5m2, value, Fp8Overflow::kSpecial), 0x7c) << value;
  }
  EXPECT_TRUE(
      std::isnan(Fp8ToFloat(kE4m3, FloatToFp8(kE4m3, std::nanf(""), Fp8Overflow::kSaturate))));
}

TEST(Bf16, IsTheUpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto b = static_cast<Bf16>(bits);
    const float value = Bf16ToFloat(b);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(value)))) << bits;
    } else {
      ASSERT_EQ(FloatToBf16(value), b) << bits;
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEvenBetweenAllNeighbours) {
  constexpr uint32_t kLargest = 0x7f7f;
  for (uint32_t bits = 0; bits < kLargest; ++bits) {
    const double below = Bf16ToFloat(static_cast<Bf16>(bits));
    const double above = Bf16ToFloat(static_cast<Bf16>(bits + 1));
    const auto midpoint = static_cast<float>((below + above) / 2);
    ASSERT_EQ(FloatToBf16(midpoint), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(FloatToBf16(std::nextafter(midpoint, 0.0f)), bits);
    ASSERT_EQ(FloatToBf16(std::nextafter(midpoint, kInfinity)), bits + 1);
  }
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7f80);  // infinity
}

}  // namespace
}  // namespace warpledger::sdpa
