// SPDX-License-Identifier: Apache-2.0
// Our host conversions against the CUDA toolkit's own, which run on the host too.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/common/random.h"
#include "kernels/sdpa/dtype/bf16.h"
#include "kernels/sdpa/dtype/fp8.h"

namespace warpledger::sdpa {
namespace {

constexpr int kDraws = 1 << 20;

// Floats of every magnitude: bit patterns at random, NaN left out.
float Draw(SplitMix64& random) {
  for (;;) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
    if (!std::isnan(value)) return value;
  }
}

TEST(CudaTypes, AgreeOnFp8) {
  SplitMix64 random(1);
  for (int i = 0; i < kDraws; ++i) {
    // Half of them in the formats' range.
    const float value = i % 2 == 0 ? Draw(random) : static_cast<float>(random.Normal() * 200);
    for (const auto& [format, theirs] :
         {std::pair{kE4m3, __NV_E4M3}, std::pair{kE5m2, __NV_E5M2}}) {
      ASSERT_EQ(FloatToFp8(format, value, Fp8Overflow::kSaturate),
                __nv_cvt_float_to_fp8(value, __NV_SATFINITE, theirs))
          << value;
      ASSERT_EQ(FloatToFp8(format, value, Fp8Overflow::kSpecial),
                __nv_cvt_float_to_fp8(value, __NV_NOSAT, theirs))
          << value;
    }
  }
  for (int code = 0; code < 256; ++code) {
    for (const auto& [format, theirs] :
         {std::pair{kE4m3, __NV_E4M3}, std::pair{kE5m2, __NV_E5M2}}) {
      const float ours = Fp8ToFloat(format, static_cast<uint8_t>(code));
      const float cuda = __half2float(
          __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), theirs)));
      if (std::isnan(ours)) {
        EXPECT_TRUE(std::isnan(cuda)) << code;
      } else {
        EXPECT_EQ(ours, cuda) << code;
      }
    }
  }
}

TEST(CudaTypes, AgreeOnBf16) {
  SplitMix64 random(2);
  for (int i = 0; i < kDraws; ++i) {
    const float value = Draw(random);
    const __nv_bfloat16 theirs = __float2bfloat16_rn(value);
    ASSERT_EQ(Bf16ToFloat(FloatToBf16(value)), __bfloat162float(theirs)) << value;
  }
}

}  // namespace
}  // namespace warpledger::sdpa
