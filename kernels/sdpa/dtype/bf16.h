// SPDX-License-Identifier: Apache-2.0
// bfloat16 on the host, as bit patterns: the upper half of a float32.

#ifndef WARPLEDGER_KERNELS_SDPA_DTYPE_BF16_H_
#define WARPLEDGER_KERNELS_SDPA_DTYPE_BF16_H_

#include <bit>
#include <cstdint>

namespace warpledger::sdpa {

using Bf16 = uint16_t;  // the bits

// Exact.
inline float Bf16ToFloat(Bf16 b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

// Rounds to nearest, ties to even; overflows to infinity; NaN stays NaN.
inline Bf16 FloatToBf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Bf16>((bits >> 16) | 0x40u);
  return static_cast<Bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_DTYPE_BF16_H_
