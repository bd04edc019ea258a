// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/shared/exp_method.h"

#include <algorithm>
#include <cfloat>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/fp16.h"

namespace warpledger::sdpa {
namespace {

double RelativeError(float x) {
  const double exact = std::exp2(static_cast<double>(x));
  return std::abs(Exp2Polynomial(x) - exact) / exact;
}

// Over a grid that no exponent boundary is a multiple of.
TEST(Exp2Polynomial, HoldsItsStatedErrorOverItsRange) {
  double worst = 0;
  for (float x = 10; x > kExp2LowestArgument; x -= 0.000137f) {
    worst = std::max(worst, RelativeError(x));
  }
  EXPECT_LT(worst, kExp2PolynomialError);
  EXPECT_GT(worst, 0.9 * kExp2PolynomialError) << "the stated error is not the tightest";
}

TEST(Exp2Polynomial, IsWellBelowTheRoundingOfAProbabilityToFp16) {
  EXPECT_LT(kExp2PolynomialError, std::exp2(-11) / 4);
}

TEST(Exp2Polynomial, IsWithinTheRuleOfTheLogSumExp) {
  EXPECT_LT(kExp2PolynomialError, std::exp2(-18));
}

TEST(Exp2Polynomial, HoldsItsErrorAtWholeAndHalfNumbers) {
  for (int n = -250; n <= 16; ++n) {
    EXPECT_LT(RelativeError(static_cast<float>(n) / 2), kExp2PolynomialError) << n / 2.0;
  }
}

TEST(Exp2Polynomial, GivesWhatFp16RoundsToZeroBelowItsRange) {
  for (const float x : {-126.5f, -1000.0f, -FLT_MAX, -std::numeric_limits<float>::infinity()}) {
    EXPECT_GT(Exp2Polynomial(x), 0) << x;
    EXPECT_LT(Exp2Polynomial(x), 1.2e-38f) << x;
    EXPECT_EQ(Fp16ToFloat(FloatToFp16(Exp2Polynomial(x))), 0) << x;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
