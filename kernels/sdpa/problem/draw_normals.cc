// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/draw_normals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "kernels/common/vector_clones.h"

namespace warpledger::sdpa {
namespace {

// Large inputs are billions of draws, which log1p and cos in double make the longest part of a
// recording. So each is computed in single precision first, in a loop of vector instructions,
// together with a bound of its error; where both ends of the bound round to the same number,
// that is the draw. The others, a few in 100, are computed as SplitMix64::Normal does.
constexpr int kBlock = 256;

// Two uniforms make a draw (Box and Muller).
struct Uniforms {
  double radius[kBlock];
  double angle[kBlock];
};

struct Guess {
  uint32_t bits[kBlock];  // the draw, if sure
  uint32_t sure[kBlock];  // 1 or 0
};

// ln x for x in [2^-53, 1]: of a mantissa in [sqrt(1/2), sqrt(2)) by the series of atanh, within
// 2e-7 of |ln x|, that of x's rounding to float included where that is 2^-24 of x.
inline float Log(float x) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const int32_t exponent = static_cast<int32_t>(bits - kSqrtHalf) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float q = f / (2.0f + f);
  const float q2 = q * q;
  const float series =
      (((1.0f / 11 * q2 + 1.0f / 9) * q2 + 1.0f / 7) * q2 + 1.0f / 5) * q2 + 1.0f / 3;
  return static_cast<float>(exponent) * std::numbers::ln2_v<float> + (2 * q + 2 * q * q2 * series);
}

// cos(2 pi x) for x in [0, 1), within 2.5e-7: the power series on a quarter of a turn.
inline float CosTurns(double x) {
  constexpr double kSquare = 4 * std::numbers::pi * std::numbers::pi;
  constexpr auto kC1 = static_cast<float>(-kSquare / 2);
  constexpr auto kC2 = static_cast<float>(kSquare * kSquare / 24);
  constexpr auto kC3 = static_cast<float>(-kSquare * kSquare * kSquare / 720);
  constexpr auto kC4 = static_cast<float>(kSquare * kSquare * kSquare * kSquare / 40320);
  constexpr auto kC5 =
      static_cast<float>(-kSquare * kSquare * kSquare * kSquare * kSquare / 3628800);
  constexpr auto kC6 =
      static_cast<float>(kSquare * kSquare * kSquare * kSquare * kSquare * kSquare / 479001600);
  const float from_half = std::fabs(static_cast<float>(x - 0.5));
  const bool far = from_half > 0.25f;
  const float turn = far ? 0.5f - from_half : from_half;
  const float t = turn * turn;
  const float cos = (((((kC6 * t + kC5) * t + kC4) * t + kC3) * t + kC2) * t + kC1) * t + 1.0f;
  return far ? cos : -cos;
}

// A float's bits, rounded to kDtype's mantissa and shifted so that it ends at bit 0.
template <Dtype kDtype>
inline uint32_t Rounded(float x) {
  constexpr int kShift = 23 - MantissaBits(kDtype);
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits + ((1u << (kShift - 1)) - 1) + (bits >> kShift & 1)) >> kShift;
}

template <Dtype kDtype>
WARPLEDGER_VECTOR_CLONES void GuessBlock(const Uniforms& uniforms, double scale, Guess* guess) {
  // Where exponents of both types are normal and away from infinity.
  constexpr float kLeast = 0x1p-14f;
  constexpr float kMost = 0x1p15f;
  constexpr uint32_t kRebias =
      kDtype == Dtype::kFp16 ? (127u - 15u) << MantissaBits(Dtype::kFp16) : 0u;
  const auto factor = static_cast<float>(scale);
  for (int i = 0; i < kBlock; ++i) {
    // ln(1 - u) of a rounded 1 - u is off by its rounding too, which counts where it is small.
    const float log = Log(static_cast<float>(1.0 - uniforms.radius[i]));
    const float radius = std::sqrt(std::max(-2.0f * log, 1e-12f));
    const float x = radius * CosTurns(uniforms.angle[i]) * factor;
    // The radius is off by 1.1e-7 of itself and 2e-7 over itself, where it is small and what
    // rounding took from 1 - u counts; the cosine by 2.5e-7; the products by less than 1.2e-7.
    const float bound = factor * (6e-7f * radius + 2e-7f / radius);
    const float least = std::fabs(x) - bound;
    const float most = std::fabs(x) + bound;
    const uint32_t magnitude = Rounded<kDtype>(least);
    guess->sure[i] = static_cast<uint32_t>(magnitude == Rounded<kDtype>(most)) &
                     static_cast<uint32_t>(least >= kLeast) & static_cast<uint32_t>(most < kMost);
    guess->bits[i] =
        (std::bit_cast<uint32_t>(x) >> 16 & 0x8000u) | ((magnitude - kRebias) & 0x7fffu);
  }
}

}  // namespace

void DrawNormals(Dtype dtype, double scale, SplitMix64& random, absl::Span<Bits16> values) {
  Uniforms uniforms = {};
  Guess guess;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const absl::Span<Bits16> block = values.subspan(begin, kBlock);
    for (size_t i = 0; i < block.size(); ++i) {
      uniforms.radius[i] = random.Uniform();
      uniforms.angle[i] = random.Uniform();
    }
    if (dtype == Dtype::kBf16) {
      GuessBlock<Dtype::kBf16>(uniforms, scale, &guess);
    } else {
      GuessBlock<Dtype::kFp16>(uniforms, scale, &guess);
    }
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] =
          guess.sure[i] != 0
              ? static_cast<Bits16>(guess.bits[i])
              : FromFloat(dtype, static_cast<float>(
                                     NormalOf(uniforms.radius[i], uniforms.angle[i]) * scale));
    }
  }
}

}  // namespace warpledger::sdpa
