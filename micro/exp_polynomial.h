// SPDX-License-Identifier: Apache-2.0
// exp(x) for softmax arguments without the special-function unit.
//
// Cody and Waite's reduction ("Software Manual for the Elementary Functions",
// 1980): n = round(x / ln 2); r = x - n * ln 2 with ln 2 in two parts, the first
// short enough that n times it is exact; exp(x) = 2^n * p(r), where 2^n is added to
// the exponent field. p is the minimax polynomial of the relative error on
// [-ln(2)/2, ln(2)/2], found by Remez' exchange algorithm in double precision and
// rounded to float: 1.7e-3, 7.5e-5 and 2.6e-6 for degrees 2 to 4, 1.4e-7 for degree 5
// with the rounding of its coefficients.
//
// Contract: x <= 0, any x, -inf too: below kLowestArgument the result is
// exp(kLowestArgument), 1.6e-38, where the true one is smaller still. NaN gives
// exp(kLowestArgument) as well, as fmaxf drops it.
//
//   float p = ExpPolynomial<3>(score - row_max);

#ifndef WARPLEDGER_MICRO_EXP_POLYNOMIAL_H_
#define WARPLEDGER_MICRO_EXP_POLYNOMIAL_H_

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define WARPLEDGER_HOST_DEVICE __host__ __device__
#else
#define WARPLEDGER_HOST_DEVICE
#endif

namespace warpledger::micro {

// Above log(FLT_MIN) = -87.34 by enough that p(r) < 1 can't leave the normal range.
inline constexpr float kLowestArgument = -87.0f;

template <int kDegree>
WARPLEDGER_HOST_DEVICE inline float ExpPolynomial(float x) {
  static_assert(kDegree >= 2 && kDegree <= 5, "coefficients are known for degrees 2 to 5");
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;    // 355 / 512: nine bits
  constexpr float kLn2Low = -2.12194440e-4f;  // ln 2 - kLn2High
  constexpr float kRounder = 12582912.0f;     // 1.5 * 2^23: adding it rounds to an integer
  constexpr int kMantissaBits = 23;

  x = fmaxf(x, kLowestArgument);
  const float shifted = x * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p;
  if constexpr (kDegree == 2) {
    p = (0.496258587f * r + 1.01486099f) * r + 1.0004431f;
  } else if constexpr (kDegree == 4) {
    p = (((0.0414586067f * r + 0.167909071f) * r + 0.500043571f) * r + 0.999963403f) * r +
        0.999999285f;
  } else if constexpr (kDegree == 3) {
    p = ((0.16566743f * r + 0.504968166f) * r + 1.00016451f) * r + 0.999927938f;
  } else {
    p = ((((0.00829761941f * r + 0.0419156291f) * r + 0.166675761f) * r + 0.499988914f) * r +
         0.999999702f) *
            r +
        1.00000012f;
  }
  // The low bits of `shifted` are n; those of kRounder fall out of the word.
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << kMantissaBits));
}

}  // namespace warpledger::micro

#endif  // WARPLEDGER_MICRO_EXP_POLYNOMIAL_H_
