// SPDX-License-Identifier: Apache-2.0
// The designs of the pipelined Hopper kernel.

#include <set>
#include <string>
#include <vector>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "gmock/gmock.h"
#include "tests/ablations/subjects/sdpa/designs/design_lookup.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAre;

TEST(HopperPlusDesign, HoldsEachLevelThatEveryHeadDimHasAloneOnTheEndOfHopper) {
  const Design design = HopperPlusDesign();
  EXPECT_EQ(design.arms.front().config, HopperEverythingOn());
  std::set<std::string> toggles;
  for (const DesignArm& arm : design.arms) {
    if (arm.role == "step") toggles.insert(arm.toggle);
  }
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (row.control || row.in_ladder || !Includes(row.families, sdpa::Family::kWgmma)) continue;
    if (row.id.starts_with("wgmma_fp8")) continue;  // HopperFp8Design
    if (row.field == &sdpa::Config::wgmma_equal_registers ||
        row.field == &sdpa::Config::wgmma_more_registers ||
        row.field == &sdpa::Config::wgmma_thread_max) {
      continue;  // HopperLengthsDesign
    }
    if (row.field == &sdpa::Config::wgmma_q_registers ||
        row.field == &sdpa::Config::wgmma_skip_maxima ||
        row.field == &sdpa::Config::wgmma_keep_kv) {
      continue;  // FastestDesigns
    }
    if (row.field == &sdpa::Config::wgmma_pack_heads ||
        row.field == &sdpa::Config::wgmma_split_kv ||
        row.field == &sdpa::Config::wgmma_join_kernel ||
        row.field == &sdpa::Config::wgmma_cluster_join) {
      continue;  // HopperDecodeDesign
    }
    EXPECT_TRUE(toggles.contains(std::string(row.id))) << row.id << " is timed nowhere";
    EXPECT_EQ(
        std::ranges::count_if(
            design.arms, [&](const DesignArm& arm) { return IsPredicted(design, row, arm.name); }),
        1)
        << row.id;
  }
  EXPECT_TRUE(design.infeasible.empty());
  for (const char* level :
       {"kv_multicast", "wgmma_cp_async", "wgmma_tile_per_cta", "wgmma_inline_loads"}) {
    const DesignArm arm = ArmNamed(design, "hopper_static_end:" + std::string(level));
    EXPECT_EQ(arm.config.dynamic_schedule, 0);
    EXPECT_EQ(arm.base, "hopper_static_end");
  }
  EXPECT_EQ(ArmNamed(design, "hopper_end:dynamic_schedule=2+tma_store").base,
            "hopper_end:dynamic_schedule=2");
}

TEST(HopperTilesDesign, HoldsTheLevelsOfTheTileThatTwoHeadDimsHave) {
  const Design design = HopperTilesDesign();
  for (const int level : {1, 2, 3, 4}) {
    const DesignArm arm = ArmNamed(design, "hopper_end:wgmma_tile=" + std::to_string(level));
    EXPECT_EQ(arm.config.wgmma_tile, level);
    EXPECT_EQ(arm.base, "hopper_end");
  }
  EXPECT_EQ(design.head_dims, (std::vector<int>{64, 128}));
}

TEST(HopperLengthsDesign, EndsItsChainWithoutTurnsAtEachHeadDimAndWithoutLazyRescalingAt64) {
  const std::string own_tile = "hopper_end:dynamic_schedule=2+tma_store+wgmma_lazy_rescale";
  const std::string power_of_two = own_tile + "+wgmma_tile=1";
  for (const int head_dim : {64, 128, 256}) {
    const Design design = HopperLengthsDesign(head_dim);
    EXPECT_EQ(design.name, "hopper_d" + std::to_string(head_dim));
    EXPECT_EQ(design.head_dims, std::vector<int>{head_dim});
    EXPECT_TRUE(design.infeasible.empty());
    for (const std::string& base : {own_tile, power_of_two}) {
      const DesignArm& arm = ArmNamed(design, base + "+ping_pong=0");
      EXPECT_EQ(arm.role, "without");
      EXPECT_THAT(Differences(design, arm.name, base), ElementsAre("ping_pong"));
    }
    for (const std::string& base : {own_tile, own_tile + "+ping_pong=0"}) {
      EXPECT_EQ(ArmNamed(design, base + "+wgmma_late_wait=2").base, base);
      const DesignArm& by_thread = ArmNamed(design, base + "+wgmma_thread_max");
      EXPECT_EQ(by_thread.base, base);
      EXPECT_THAT(Differences(design, by_thread.name, base), ElementsAre("wgmma_thread_max"));
      for (const sdpa::ToggleRow& row : sdpa::kToggles) {
        EXPECT_EQ(IsPredicted(design, row, by_thread.name),
                  base != own_tile && row.id == "wgmma_thread_max")
            << row.id << " " << by_thread.name;
      }
    }
    int without_lazy = 0;
    for (const DesignArm& arm : design.arms) {
      without_lazy += arm.toggle == "wgmma_lazy_rescale" && arm.role == "without" ? 1 : 0;
    }
    EXPECT_EQ(without_lazy, head_dim == 64 ? 2 : 0);
    const std::string equal = power_of_two + "+wgmma_equal_registers";
    const auto holds_equal = [&](const DesignArm& arm) { return arm.name == equal; };
    EXPECT_EQ(std::ranges::count_if(design.arms, holds_equal), head_dim == 64 ? 1 : 0);
    const std::string more = power_of_two + "+wgmma_more_registers";
    EXPECT_THAT(Differences(design, more, power_of_two), ElementsAre("wgmma_more_registers"));
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      EXPECT_EQ(IsPredicted(design, row, more), row.id == "wgmma_more_registers") << row.id;
    }
    if (head_dim != 64) continue;
    // One, two and three stages, and the end's own four.
    EXPECT_EQ(ArmNamed(design, "hopper_end:kv_ring_stages=0").role, "without");
    for (const int stages : {2, 3}) {
      const DesignArm& arm =
          ArmNamed(design, "hopper_end:kv_ring_stages=0+kv_ring_stages=" + std::to_string(stages));
      EXPECT_EQ(arm.base, "hopper_end:kv_ring_stages=0");
      EXPECT_EQ(sdpa::WgmmaShapeOf(sdpa::Specialise(arm.config, 64, false)).stages, stages);
    }
    EXPECT_EQ(ArmNamed(design, equal).base, power_of_two);
    EXPECT_EQ(ArmNamed(design, power_of_two + "+ping_pong=0+wgmma_thread_max").base,
              power_of_two + "+ping_pong=0");
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      EXPECT_EQ(IsPredicted(design, row, equal), row.id == "wgmma_equal_registers") << row.id;
    }
  }
}

TEST(HopperBf16Design, HoldsBothSchedulesInBothDtypes) {
  const Design design = HopperBf16Design();
  EXPECT_EQ(ArmNamed(design, "hopper_end").config, HopperEverythingOn());
  EXPECT_EQ(Differences(ArmNamed(design, "hopper_static_end").config, HopperEverythingOn()),
            (std::set<std::string>{"dynamic_schedule"}));
  for (const DesignArm& arm : design.arms) {
    int bf16 = 0;
    for (const sdpa::Config& config : Specialisations(design, arm)) {
      bf16 += config.dtype == sdpa::Dtype::kBf16 ? 1 : 0;
    }
    EXPECT_EQ(bf16, 4) << arm.name;  // two head dimensions, two masks
  }
  const std::string own_tile = "hopper_end:dynamic_schedule=2+tma_store+wgmma_lazy_rescale";
  for (const std::string& base : {own_tile, own_tile + "+wgmma_tile=1"}) {
    EXPECT_THAT(Differences(design, base + "+ping_pong=0", base), ElementsAre("ping_pong"));
  }
  for (const std::string& base : {own_tile, own_tile + "+ping_pong=0"}) {
    EXPECT_EQ(ArmNamed(design, base + "+wgmma_thread_max").base, base);
  }
}

TEST(HopperDecodeDesign, SharesKeysWithAndWithoutPackedHeads) {
  const Design design = HopperDecodeDesign();
  const sdpa::Config base = ArmNamed(design, "hopper_decode:base").config;
  EXPECT_EQ(base.wgmma_tile_per_cta, 1);
  std::set<std::string> predicted;
  for (const DesignArm& arm : design.arms) {
    if (arm.role != "step") continue;
    for (const sdpa::ToggleRow& row : sdpa::kToggles) {
      if (row.id == arm.toggle && IsPredicted(design, row, arm.name)) {
        EXPECT_TRUE(predicted.insert(arm.toggle).second) << arm.toggle << " is predicted twice";
      }
    }
  }
  EXPECT_EQ(predicted, (std::set<std::string>{"wgmma_pack_heads", "wgmma_split_kv",
                                              "wgmma_dependent_launch", "wgmma_l2_promotion",
                                              "wgmma_join_kernel", "wgmma_cluster_join"}));
  const std::string both = "hopper_decode:base+wgmma_pack_heads+wgmma_split_kv";
  for (const std::string& arm :
       {std::string("hopper_decode:base+wgmma_split_kv"), both, both + "+wgmma_tile=3",
        both + "+wgmma_dependent_launch", both + "+wgmma_tile=3+wgmma_dependent_launch",
        both + "+wgmma_join_kernel",
        both + "+wgmma_join_kernel+wgmma_dependent_launch+wgmma_tile=3",
        both + "+wgmma_cluster_join+wgmma_dependent_launch+wgmma_tile=3"}) {
    EXPECT_EQ(ArmNamed(design, arm).config.wgmma_split_kv, 1) << arm;
  }
  EXPECT_TRUE(design.infeasible.empty());
}

TEST(HopperGqaDesign, PacksHeadsOnTheEndOfHopper) {
  const Design design = HopperGqaDesign();
  EXPECT_EQ(design.arms.front().config, HopperEverythingOn());
  EXPECT_EQ(
      Differences(ArmNamed(design, "hopper_end:wgmma_pack_heads").config, HopperEverythingOn()),
      (std::set<std::string>{"wgmma_pack_heads"}));
}

TEST(HopperFp8Design, HoldsFp8OnEitherScheduleAndItsSumsInTwoLevels) {
  const Design design = HopperFp8Design();
  EXPECT_TRUE(design.infeasible.empty());
  for (const std::string end : {"hopper_end", "hopper_static_end"}) {
    const DesignArm& exact = ArmNamed(design, end + ":wgmma_fp8+wgmma_fp8_two_level");
    EXPECT_EQ(exact.base, end);
    EXPECT_EQ(exact.toggle, "wgmma_fp8");
    EXPECT_THAT(Differences(design, exact.name, end),
                ElementsAre("wgmma_fp8", "wgmma_fp8_two_level"));
    // What breaks the accuracy rule is compared with what doesn't, and nothing stands on it.
    const DesignArm& one_level = ArmNamed(design, end + ":wgmma_fp8");
    EXPECT_EQ(one_level.base, exact.name);
    EXPECT_EQ(one_level.role, "without");
    EXPECT_EQ(one_level.toggle, "wgmma_fp8_two_level");
    EXPECT_TRUE(sdpa::MayBreak(one_level.config));
    EXPECT_FALSE(sdpa::MayBreak(exact.config));
    for (const DesignArm& arm : design.arms) EXPECT_NE(arm.base, one_level.name) << arm.name;
  }
  const std::string exact = "hopper_end:wgmma_fp8+wgmma_fp8_two_level";
  for (const std::string toggle : {"ping_pong", "softmax_overlap"}) {
    const DesignArm& without = ArmNamed(design, exact + "+" + toggle + "=0");
    EXPECT_EQ(without.role, "without");
    EXPECT_EQ(without.base, exact);
    EXPECT_THAT(Differences(design, without.name, exact), ElementsAre(toggle));
  }
  const std::string late = exact + "+ping_pong=0+wgmma_late_wait=2";
  for (const std::string toggle : {"tma_store", "dynamic_schedule=2", "wgmma_exp=1"}) {
    EXPECT_EQ(ArmNamed(design, late + "+" + toggle).base, late);
  }
  const DesignArm& block_scale = ArmNamed(design, exact + "+wgmma_fp8_block_scale");
  EXPECT_EQ(block_scale.base, exact);
  for (const sdpa::ToggleRow& row : sdpa::kToggles) {
    if (!row.id.starts_with("wgmma_fp8")) continue;
    if (row.id == "wgmma_fp8_output") continue;  // OutputFp8Design
    const bool own_arm = row.id == "wgmma_fp8_block_scale";
    EXPECT_EQ(IsPredicted(design, row, exact), !own_arm) << row.id;
    EXPECT_EQ(IsPredicted(design, row, block_scale.name), own_arm) << row.id;
    EXPECT_FALSE(IsPredicted(design, row, "hopper_end:wgmma_fp8")) << row.id;
  }
}

}  // namespace
}  // namespace warpledger::ablations
