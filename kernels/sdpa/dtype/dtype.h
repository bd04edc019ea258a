// SPDX-License-Identifier: Apache-2.0
// The type of a problem's tensors, as bit patterns on the host.

#ifndef WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_H_
#define WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_H_

#include <cstdint>

#include "kernels/sdpa/dtype/bf16.h"
#include "kernels/sdpa/dtype/fp16.h"

namespace warpledger::sdpa {

// Of Q, K, V and O, and of every intermediate tensor of the naive computation.
enum class Dtype { kFp16, kBf16 };

using Bits16 = uint16_t;  // an element of either type

inline constexpr Dtype kDtypes[] = {Dtype::kFp16, Dtype::kBf16};

inline float ToFloat(Dtype dtype, Bits16 bits) {
  return dtype == Dtype::kBf16 ? Bf16ToFloat(bits) : Fp16ToFloat(bits);
}
inline Bits16 FromFloat(Dtype dtype, float value) {
  return dtype == Dtype::kBf16 ? FloatToBf16(value) : FloatToFp16(value);
}
inline float RoundTo(Dtype dtype, float value) { return ToFloat(dtype, FromFloat(dtype, value)); }

// Explicit bits of the mantissa, and the exponent of the smallest normal number.
constexpr int MantissaBits(Dtype dtype) { return dtype == Dtype::kBf16 ? 7 : 10; }
constexpr int SmallestExponent(Dtype dtype) { return dtype == Dtype::kBf16 ? -126 : -14; }

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_DTYPE_DTYPE_H_
