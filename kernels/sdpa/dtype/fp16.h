// SPDX-License-Identifier: Apache-2.0
// fp16 (IEEE 754 binary16) on the host, as bit patterns.

#ifndef WARPLEDGER_KERNELS_SDPA_DTYPE_FP16_H_
#define WARPLEDGER_KERNELS_SDPA_DTYPE_FP16_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace warpledger::sdpa {

using Fp16 = uint16_t;  // the bits

// Exact.
inline float Fp16ToFloat(Fp16 h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1f;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  const uint32_t bits =
      exponent == 31 ? 0x7f800000u | (mantissa << 13) : ((exponent + 112) << 23) | (mantissa << 13);
  return std::bit_cast<float>(bits | sign);
}

// Rounds to nearest, ties to even; overflows to infinity; NaN stays NaN.
inline Fp16 FloatToFp16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<Fp16>((bits >> 16) & 0x8000u);
  const float magnitude = std::fabs(f);
  if (std::isnan(f)) return sign | 0x7e00u;
  if (magnitude >= 65520.0f) return sign | 0x7c00u;
  if (magnitude < 0x1p-14f) {
    // Adding 0.5 leaves the subnormal's integer multiple of 2^-24 in the low
    // bits of the mantissa, rounded by the FPU.
    const uint32_t rounded = std::bit_cast<uint32_t>(magnitude + 0.5f);
    return static_cast<Fp16>(sign | (rounded - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t abs_bits = bits & 0x7fffffffu;
  const uint32_t round = 0xfffu + ((abs_bits >> 13) & 1u);
  return static_cast<Fp16>(sign | ((abs_bits + round - (112u << 23)) >> 13));
}

inline float RoundToFp16(float f) { return Fp16ToFloat(FloatToFp16(f)); }

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_DTYPE_FP16_H_
