// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/tensor_npy.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

using sdpa::Bits16;
using sdpa::Dtype;

TEST(TensorNpy, KeepsFp16sBits) {
  const std::vector<Bits16> values = {0x0000, 0x8000, 0x3c00, 0x7bff, 0x0001, 0xfc00};
  const NpyArray array = NpyFromTensor({2, 3}, values, Dtype::kFp16);
  EXPECT_EQ(array.type, NpyType::kFloat16);
  EXPECT_EQ(array.data.size(), 12u);
  EXPECT_EQ(TensorFromNpy(array, Dtype::kFp16), values);
}

TEST(TensorNpy, WritesBf16AsFp32AndReadsItBackExactly) {
  std::vector<Bits16> values;
  for (int bits = 0; bits < 65536; bits += 7) {
    if (!std::isnan(sdpa::Bf16ToFloat(static_cast<Bits16>(bits)))) {
      values.push_back(static_cast<Bits16>(bits));
    }
  }
  const NpyArray array = NpyFromTensor({static_cast<int64_t>(values.size())}, values, Dtype::kBf16);
  EXPECT_EQ(array.type, NpyType::kFloat32);
  EXPECT_EQ(TensorFromNpy(array, Dtype::kBf16), values);
}

TEST(TensorNpy, RoundsFp32ToBf16) {
  const float values[] = {1.0f, 1.00390625f, 1.01171875f, -3.3895314e38f};  // 1 + 2^-8, 1 + 3 2^-8
  NpyArray array;
  array.shape = {4};
  array.type = NpyType::kFloat32;
  array.data.resize(sizeof(values));
  std::memcpy(array.data.data(), values, sizeof(values));
  EXPECT_EQ(TensorFromNpy(array, Dtype::kBf16),
            (std::vector<Bits16>{0x3f80, 0x3f80, 0x3f82, 0xff7f}));
}

}  // namespace
}  // namespace warpledger::ablations
