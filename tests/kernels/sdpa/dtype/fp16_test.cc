// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/dtype/fp16.h"

#include <limits>

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

constexpr uint32_t kPatterns = 65536;
constexpr Fp16 kInfinity = 0x7c00;
constexpr Fp16 kLargest = 0x7bff;  // 65504

bool IsNan(Fp16 h) { return (h & 0x7fff) > kInfinity; }

// What IEEE 754 says that a pattern means, by its formula.
double Meaning(Fp16 h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 31) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Fp16ToFloat, MeansWhatTheFormatSaysForEachPattern) {
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const auto h = static_cast<Fp16>(bits);
    const float value = Fp16ToFloat(h);
    if (IsNan(h)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(double{value}, Meaning(h)) << bits;
      ASSERT_EQ(std::signbit(value), h >> 15 != 0) << bits;  // -0 is not 0
    }
  }
}

TEST(FloatToFp16, GivesEachFp16NumberBack) {
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const auto h = static_cast<Fp16>(bits);
    if (IsNan(h)) continue;
    ASSERT_EQ(FloatToFp16(Fp16ToFloat(h)), h) << bits;
  }
}

// Between two neighbours the result changes exactly at their midpoint, which
// itself goes to the one with the even mantissa: with the exact round trip above
// this settles every float in range.
TEST(FloatToFp16, RoundsToTheNearestAndTiesToEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < kLargest; ++bits) {
    const auto below = static_cast<Fp16>(bits);
    const auto above = static_cast<Fp16>(bits + 1);
    const double exact = (Meaning(below) + Meaning(above)) / 2;
    const auto midpoint = static_cast<float>(exact);
    ASSERT_EQ(double{midpoint}, exact) << bits;
    const Fp16 even = below % 2 == 0 ? below : above;
    for (const Fp16 sign : {Fp16{0}, Fp16{0x8000}}) {
      const float s = sign ? -1.0f : 1.0f;
      ASSERT_EQ(FloatToFp16(s * midpoint), sign | even) << bits;
      ASSERT_EQ(FloatToFp16(s * std::nextafter(midpoint, 0.0f)), sign | below) << bits;
      ASSERT_EQ(FloatToFp16(s * std::nextafter(midpoint, 1e9f)), sign | above) << bits;
    }
  }
}

TEST(FloatToFp16, OverflowsToInfinityFromTheMidpointPastTheLargestNumberOn) {
  EXPECT_EQ(FloatToFp16(65504.0f), kLargest);
  EXPECT_EQ(FloatToFp16(std::nextafter(65520.0f, 0.0f)), kLargest);
  EXPECT_EQ(FloatToFp16(65520.0f), kInfinity);
  EXPECT_EQ(FloatToFp16(-65520.0f), 0x8000 | kInfinity);
  EXPECT_EQ(FloatToFp16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(FloatToFp16(std::numeric_limits<float>::infinity()), kInfinity);
  EXPECT_EQ(FloatToFp16(-std::numeric_limits<float>::infinity()), 0x8000 | kInfinity);
}

TEST(FloatToFp16, UnderflowsThroughSubnormalsToASignedZero) {
  EXPECT_EQ(FloatToFp16(0x1p-14f), 0x0400);  // smallest normal
  EXPECT_EQ(FloatToFp16(0x1p-24f), 0x0001);  // smallest subnormal
  EXPECT_EQ(FloatToFp16(0x1p-25f), 0x0000);  // a tie, to even
  EXPECT_EQ(FloatToFp16(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(FloatToFp16(0x1.8p-24f), 0x0002);  // a tie between 1 and 2
  EXPECT_EQ(FloatToFp16(-0x1p-30f), 0x8000);
  EXPECT_EQ(FloatToFp16(-0.0f), 0x8000);
  EXPECT_EQ(FloatToFp16(std::numeric_limits<float>::denorm_min()), 0x0000);
}

TEST(FloatToFp16, KeepsNanNanWhateverItsPayload) {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu, 0xff800001u}) {
    EXPECT_TRUE(IsNan(FloatToFp16(std::bit_cast<float>(bits)))) << std::hex << bits;
  }
}

TEST(RoundToFp16, IsTheValueThatFp16Holds) {
  EXPECT_EQ(RoundToFp16(1.0f + 0x1p-12f), 1.0f);
  EXPECT_EQ(RoundToFp16(1.0f + 0x1.8p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(RoundToFp16(0.1f), 0x1.998p-4f);
  EXPECT_EQ(RoundToFp16(-3.0f), -3.0f);
}

}  // namespace
}  // namespace warpledger::sdpa
