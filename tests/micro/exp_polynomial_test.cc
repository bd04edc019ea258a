// SPDX-License-Identifier: Apache-2.0
#include "micro/exp_polynomial.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace warpledger::micro {
namespace {

// Over a grid that no exponent boundary is a multiple of.
template <int kDegree>
double LargestRelativeError() {
  double worst = 0;
  for (float x = 0; x > kLowestArgument; x -= 0.000137f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(ExpPolynomial<kDegree>(x) - exact) / exact);
  }
  return worst;
}

TEST(ExpPolynomial, HoldsTheMinimaxErrorOfItsDegree) {
  EXPECT_LT(LargestRelativeError<2>(), 1.73e-3);
  EXPECT_LT(LargestRelativeError<3>(), 7.6e-5);
  EXPECT_LT(LargestRelativeError<4>(), 2.8e-6);
  EXPECT_LT(LargestRelativeError<5>(), 4e-7);
}

TEST(ExpPolynomial, IsWorseWithALowerDegree) {
  EXPECT_GT(LargestRelativeError<2>(), 20 * LargestRelativeError<3>());
  EXPECT_GT(LargestRelativeError<3>(), 20 * LargestRelativeError<4>());
  EXPECT_GT(LargestRelativeError<4>(), 5 * LargestRelativeError<5>());
}

TEST(ExpPolynomial, GivesATinyNormalNumberBelowItsRange) {
  for (const float x :
       {-87.0f, -88.0f, -1000.0f, -FLT_MAX, -std::numeric_limits<float>::infinity()}) {
    EXPECT_GE(ExpPolynomial<3>(x), FLT_MIN) << x;
    EXPECT_LT(ExpPolynomial<3>(x), 1.7e-38f) << x;
    EXPECT_GE(ExpPolynomial<2>(x), FLT_MIN) << x;
    EXPECT_LT(ExpPolynomial<2>(x), 1.7e-38f) << x;
    EXPECT_GE(ExpPolynomial<4>(x), FLT_MIN) << x;
    EXPECT_LT(ExpPolynomial<4>(x), 1.7e-38f) << x;
    EXPECT_GE(ExpPolynomial<5>(x), FLT_MIN) << x;
    EXPECT_LT(ExpPolynomial<5>(x), 1.7e-38f) << x;
  }
}

}  // namespace
}  // namespace warpledger::micro
