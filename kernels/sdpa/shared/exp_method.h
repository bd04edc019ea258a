// SPDX-License-Identifier: Apache-2.0
// The ways in which the softmax can take its exponential, and the polynomial one,
// which the host can run too.
//
// Each method computes exp(x) for x = scale * (score - maximum) <= 0, or a little
// above 0 where rescaling is lazy. Its error is of the softmax's probability,
// which is rounded to fp16 (2^-11 = 4.9e-4 relative) right after.
//
//   method          instructions of an element on sm_90     largest relative error
//   kExpf           expf: range reduction, MUFU.EX2         2.0e-7 (1 ulp, CUDA guide)
//   kExpFolded      FFMA, MUFU.EX2: log2(e) is in the       3e-7 (2 ulp, PTX ISA) + |x| 2^-24
//                   softmax scale
//   kExpIntrinsic   __expf: FMUL, MUFU.EX2                  2^-22 (2 + 1.173 |x|) (CUDA guide)
//   kExpHalfPairs   FFMA, half of F2FP and MUFU.EX2.F16     |x| 2^-11 + 2^-9.9 (PTX ISA): the
//                                                           argument is fp16
//   kExpPolynomial  FMNMX, 3 FADD, 4 FFMA, LEA: no MUFU     2.8e-6: degree 4
//   kExpMixed       one element in kMixPeriod as            2.8e-6
//                   kExpPolynomial, others as kExpFolded
//
// Degree 3 (7.5e-5) would do for the probabilities, but not for the log-sum-exp, whose
// rule is 2^-18 of its magnitude.
//
// Exp2Polynomial: 2^x = 2^n * p(x - n) with n = round(x), by Cody and Waite's
// method ("Software Manual for the Elementary Functions", 1980); p is the minimax
// polynomial of the relative error on [-1/2, 1/2], found by Remez' exchange
// algorithm in double precision. In base 2 the reduction x - n is exact.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_EXP_METHOD_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_EXP_METHOD_H_

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define WARPLEDGER_HOST_DEVICE __host__ __device__
#else
#define WARPLEDGER_HOST_DEVICE
#endif

namespace warpledger::sdpa {

enum class ExpMethod {
  kExpf = 0,
  kExpFolded = 1,
  kExpIntrinsic = 2,
  kExpHalfPairs = 3,
  kExpPolynomial = 4,
  kExpMixed = 5,
};

// MUFU gives 16 results a cycle and SM, the FMA pipe 128 operations. One in four by
// the polynomial moves a quarter of the one's work for nine instructions each on
// the others.
inline constexpr int kMixPeriod = 4;

// Whether scores are multiplied by log2(e) along with the softmax scale.
constexpr bool InLog2Units(ExpMethod method) {
  return method != ExpMethod::kExpf && method != ExpMethod::kExpIntrinsic;
}

// 2^-126, the smallest normal number; below it the polynomial stays at about it.
inline constexpr float kExp2LowestArgument = -126.0f;
inline constexpr double kExp2PolynomialError = 2.8e-6;

// 2^x for x <= 127. x below kExp2LowestArgument, -infinity too, gives about 1.2e-38,
// which fp16 rounds to 0 but which a sum of them in fp32 would not.
WARPLEDGER_HOST_DEVICE inline float Exp2Polynomial(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr int kMantissaBits = 23;
  x = fmaxf(x, kExp2LowestArgument);
  const float shifted = x + kRounder;
  const float r = x - (shifted - kRounder);
  const float p =
      (((0.00957010221f * r + 0.0559178591f) * r + 0.240247443f) * r + 0.693121791f) * r +
      0.999999285f;
  // The low bits of `shifted` are n; those of kRounder fall out of the word.
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << kMantissaBits));
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_EXP_METHOD_H_
