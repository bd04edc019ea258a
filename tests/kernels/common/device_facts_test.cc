// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/device_facts.h"

#include "gtest/gtest.h"

namespace warpledger {
namespace {

TEST(DeviceSlug, DropsTheVendorAndJoinsWords) {
  EXPECT_EQ(DeviceSlug("NVIDIA H200"), "h200");
  EXPECT_EQ(DeviceSlug("NVIDIA L4"), "l4");
  EXPECT_EQ(DeviceSlug("NVIDIA H100 80GB HBM3"), "h100_80gb_hbm3");
  EXPECT_EQ(DeviceSlug("NVIDIA A100-SXM4-80GB"), "a100_sxm4_80gb");
}

TEST(DeviceSlug, DropsBrandNamesToo) {
  EXPECT_EQ(DeviceSlug("NVIDIA GeForce RTX 4090"), "rtx_4090");
  EXPECT_EQ(DeviceSlug("Tesla V100-SXM2-16GB"), "v100_sxm2_16gb");
}

TEST(DeviceSlug, IsAlwaysOneFolderNameBelowItsParent) {
  EXPECT_EQ(DeviceSlug("../etc"), "etc");
  EXPECT_EQ(DeviceSlug("a/b\\c  (d)"), "a_b_c_d");
  EXPECT_EQ(DeviceSlug(""), "unknown");
  EXPECT_EQ(DeviceSlug("NVIDIA "), "unknown");
  EXPECT_EQ(DeviceSlug("..."), "unknown");
}

}  // namespace
}  // namespace warpledger
