// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/draw_normals.h"

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/dtype/dtype_name.h"

namespace warpledger::sdpa {
namespace {

std::vector<Bits16> OneByOne(Dtype dtype, double scale, SplitMix64& random, size_t count) {
  std::vector<Bits16> values(count);
  for (Bits16& value : values) {
    value = FromFloat(dtype, static_cast<float>(random.Normal() * scale));
  }
  return values;
}

// Four million draws reach five standard deviations, and small numbers of many exponents, some of
// which fp16 rounds in another way (its subnormals).
TEST(DrawNormals, AreTheGeneratorsOwnToTheLastBit) {
  constexpr size_t kCount = 4 << 20;
  for (const Dtype dtype : kDtypes) {
    for (const double scale : {1.0, 8.0, 0.1}) {
      SplitMix64 at_once(7);
      SplitMix64 in_turn(7);
      std::vector<Bits16> values(kCount);
      DrawNormals(dtype, scale, at_once, absl::MakeSpan(values));
      const std::vector<Bits16> wanted = OneByOne(dtype, scale, in_turn, kCount);
      size_t different = 0;
      for (size_t i = 0; i < kCount; ++i) different += values[i] == wanted[i] ? 0 : 1;
      EXPECT_EQ(different, 0u) << DtypeName(dtype) << ", scale " << scale;
      EXPECT_EQ(at_once.Next(), in_turn.Next()) << "the generator goes on from another place";
    }
  }
}

TEST(DrawNormals, OfAnyCount) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{257}}) {
    SplitMix64 at_once(3);
    SplitMix64 in_turn(3);
    std::vector<Bits16> values(count);
    DrawNormals(Dtype::kFp16, 1.0, at_once, absl::MakeSpan(values));
    EXPECT_EQ(values, OneByOne(Dtype::kFp16, 1.0, in_turn, count));
    EXPECT_EQ(at_once.Next(), in_turn.Next());
  }
}

}  // namespace
}  // namespace warpledger::sdpa
