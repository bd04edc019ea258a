// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/data.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

template <typename T>
double One(const char* dtype, T bits) {
  std::byte data[sizeof(T)];
  std::memcpy(data, &bits, sizeof(T));
  return Decode(dtype, data, 1).front();
}

TEST(DataTest, DecodesEachType) {
  EXPECT_EQ(One("fp64", 1.5), 1.5);
  EXPECT_EQ(One("fp32", -0.25f), -0.25);
  EXPECT_EQ(One("int32", int32_t{-7}), -7);
  EXPECT_EQ(One("int8", int8_t{-8}), -8);
  EXPECT_EQ(One<uint16_t>("fp16", 0x3c00), 1);
  EXPECT_EQ(One<uint16_t>("fp16", 0xfbff), -65504);
  EXPECT_EQ(One<uint16_t>("fp16", 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(One<uint16_t>("fp16", 0x7c00), INFINITY);
  EXPECT_EQ(One<uint16_t>("bf16", 0xc040), -3);
  EXPECT_EQ(One<uint8_t>("e4m3", 0x7e), 448);
  EXPECT_EQ(One<uint8_t>("e4m3", 0x01), std::ldexp(1, -9));
  EXPECT_EQ(One<uint8_t>("e5m2", 0xfb), -57344);
}

TEST(DataTest, ThePoisonIsNanInEveryFloat) {
  for (const char* dtype : {"fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2"}) {
    EXPECT_TRUE(std::isnan(One(dtype, ~uint64_t{0}))) << dtype;
  }
}

}  // namespace
}  // namespace warpledger::ablations
