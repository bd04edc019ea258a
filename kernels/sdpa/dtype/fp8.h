// SPDX-License-Identifier: Apache-2.0
// The 8-bit floating-point formats on the host, as bit patterns: E4M3 and E5M2 of
// "FP8 Formats for Deep Learning" (arXiv 2209.05433), as NVIDIA's tensor cores read them.
//
// E4M3 has no infinity; its one NaN per sign is all ones, so its largest number is 448.
// E5M2 is an IEEE format with infinities; its largest number is 57344. Both are subsets
// of fp16, so a code's fp16 is exact.
//
//   const uint8_t code = FloatToFp8(kE4m3, 0.3f, Fp8Overflow::kSaturate);
//   const float x = Fp8ToFloat(kE4m3, code);  // 0.3125

#ifndef WARPLEDGER_KERNELS_SDPA_DTYPE_FP8_H_
#define WARPLEDGER_KERNELS_SDPA_DTYPE_FP8_H_

#include <cmath>
#include <cstdint>
#include <limits>

namespace warpledger::sdpa {

struct Fp8Format {
  int mantissa_bits;
  int bias;
  uint8_t largest;   // code of the largest number
  uint8_t overflow;  // code behind it: NaN in E4M3, infinity in E5M2
  uint8_t nan;
};
inline constexpr Fp8Format kE4m3 = {3, 7, 0x7e, 0x7f, 0x7f};
inline constexpr Fp8Format kE5m2 = {2, 15, 0x7b, 0x7c, 0x7f};

// What becomes of a number that rounds past the largest one: cvt's .satfinite gives the
// largest; a cast without it gives NaN in E4M3 and infinity in E5M2.
enum class Fp8Overflow { kSaturate, kSpecial };

// Exact.
inline float Fp8ToFloat(const Fp8Format& format, uint8_t code) {
  const int magnitude = code & 0x7f;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (magnitude > format.largest) {
    if (magnitude == format.overflow && format.overflow != format.nan) {
      return sign * std::numeric_limits<float>::infinity();
    }
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const int exponent = magnitude >> format.mantissa_bits;
  const int fraction = magnitude & ((1 << format.mantissa_bits) - 1);
  const int implicit = exponent > 0 ? 1 << format.mantissa_bits : 0;
  return sign * std::ldexp(static_cast<float>(implicit + fraction),
                           (exponent > 0 ? exponent : 1) - format.bias - format.mantissa_bits);
}

inline float LargestFp8(const Fp8Format& format) { return Fp8ToFloat(format, format.largest); }

// Rounds to nearest, ties to even. Infinity overflows as a number does; NaN stays NaN.
inline uint8_t FloatToFp8(const Fp8Format& format, float f, Fp8Overflow overflow) {
  const uint8_t sign = std::signbit(f) ? 0x80 : 0;
  if (std::isnan(f)) return format.nan;
  const uint8_t beyond = overflow == Fp8Overflow::kSaturate ? format.largest : format.overflow;
  const float magnitude = std::fabs(f);
  if (magnitude == 0) return sign;
  if (magnitude >= 2 * LargestFp8(format)) return sign | beyond;
  const int smallest_exponent = 1 - format.bias;
  int exponent = std::ilogb(magnitude);
  if (exponent < smallest_exponent) exponent = smallest_exponent;
  // In units of the last place, which the division leaves exact but for the rounding.
  const int units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  // The implicit bit of `units` is one step of the exponent; subnormals have none.
  const int code = ((exponent + format.bias - 1) << format.mantissa_bits) + units;
  return sign | (code > format.largest ? beyond : static_cast<uint8_t>(code));
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_DTYPE_FP8_H_
