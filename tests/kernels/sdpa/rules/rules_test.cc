// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/rules/rules.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/smem/smem_layout.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa {
namespace {

using Kind = InvalidReason::Kind;

std::vector<Exclusion> AllExclusions() {
  std::vector<Exclusion> all;
  AskEveryFamily([&](auto family) {
    all.insert(all.end(), std::begin(family.kExclusions), std::end(family.kExclusions));
  });
  return all;
}

TEST(WhyInvalid, RefusesBf16InAFamilyThatComputesInFp16Alone) {
  Config config = Specialise(Config{}, 64, false, Dtype::kBf16);
  ASSERT_EQ(FamilyOf(config), Family::kSmem);
  const InvalidReason reason = WhyInvalid(config);
  EXPECT_TRUE(reason);
  EXPECT_EQ(reason.toggle, "bf16");
  EXPECT_FALSE(reason.why.empty());
  config.dtype = Dtype::kFp16;
  EXPECT_FALSE(WhyInvalid(config));
}

TEST(WhyInvalid, RefusesInBf16WhatIsFp16Alone) {
  std::vector<Bf16Exclusion> rules;
  AskEveryFamily([&](auto family) {
    rules.insert(rules.end(), std::begin(family.kBf16Exclusions), std::end(family.kBf16Exclusions));
  });
  EXPECT_EQ(rules.size(), 6u);
  for (const Bf16Exclusion& rule : rules) {
    const bool of_wgmma = rule.toggle == &Config::wgmma_exp;
    Config config =
        of_wgmma ? Config{.wgmma = 1} : Config{.mma_sync = 1, .mma_v_ldmatrix_trans = 1};
    EXPECT_FALSE(WhyInvalid(Specialise(config, 64, false, Dtype::kBf16)));
    config.*rule.toggle = rule.from;
    EXPECT_FALSE(WhyInvalid(config)) << ConfigName(config);
    const InvalidReason reason = WhyInvalid(Specialise(config, 64, false, Dtype::kBf16));
    EXPECT_EQ(reason.toggle, ToggleId(rule.toggle));
    EXPECT_EQ(reason.missing, "bf16");
    EXPECT_EQ(reason.why, rule.why);
  }
}

TEST(WhyInvalid, KnowsFp8AtTheHeadDimWhoseRowsFillTheSwizzle) {
  constexpr Config kFp8 = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_fp8 = 1};
  EXPECT_FALSE(WhyInvalid(kFp8)) << "of no head dimension yet";
  EXPECT_FALSE(WhyInvalid(Specialise(kFp8, 128, true)));
  EXPECT_EQ(WhyInvalid(Specialise(kFp8, 64, true)).toggle, "wgmma_fp8");
  EXPECT_EQ(WhyInvalid(Specialise(kFp8, 256, false)).toggle, "wgmma_fp8");
}

TEST(WhyInvalid, AcceptsTheBaselineAndEachStepOfTheLadder) {
  Config config;
  EXPECT_FALSE(WhyInvalid(config));
  for (const Family family : {Family::kSmem, Family::kWgmma, Family::kMma, Family::kResident}) {
    config = Config{};
    for (const ToggleRow& row : kToggles) {
      if (!row.control && (!row.in_ladder || !Includes(row.families, family))) continue;
      config.*row.field = row.levels.values[1];
      EXPECT_FALSE(WhyInvalid(config)) << ConfigName(config);
    }
  }
}

TEST(WhyInvalid, NamesTheToggleOfALevelThatDoesNotExist) {
  for (const ToggleRow& row : kToggles) {
    for (const int level : {-1, 1000}) {
      Config config = LastStep();
      config.*row.field = level;
      const InvalidReason reason = WhyInvalid(config);
      EXPECT_EQ(reason.kind, Kind::kUnknownLevel) << row.id;
      EXPECT_EQ(reason.toggle, row.id);
      EXPECT_EQ(reason.missing, "");
    }
  }
}

TEST(WhyInvalid, RefusesASingleStageOfCpAsync) {
  EXPECT_EQ(WhyInvalid({.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 1}).kind,
            Kind::kUnknownLevel);
}

TEST(WhyInvalid, NamesTheToggleAndWhatItLacks) {
  const InvalidReason tile = WhyInvalid({.tile_m32_warps4 = 1});
  EXPECT_EQ(tile.kind, Kind::kMissingRequirement);
  EXPECT_EQ(tile.toggle, "tile_m32_warps4");
  EXPECT_EQ(tile.missing, "kv_tiling");

  const InvalidReason copies = WhyInvalid({.kv_tiling = 1, .cp_async_stages = 2});
  EXPECT_EQ(copies.kind, Kind::kMissingRequirement);
  EXPECT_EQ(copies.toggle, "cp_async_stages");
  EXPECT_EQ(copies.missing, "vector_loads");
}

// Switches on, at their first levels, what a toggle needs and what that needs in turn,
// all but `except`.
void AddNeedsBut(ToggleField toggle, ToggleField except, Config* config) {
  for (const ToggleRow& row : kToggles) {
    if (row.field != toggle) continue;
    for (const ToggleField need : row.needs) {
      if (need == nullptr || need == except) continue;
      for (const ToggleRow& needed : kToggles) {
        if (needed.field == need) config->*need = needed.levels.values[1];
      }
      AddNeedsBut(need, except, config);
    }
  }
}

TEST(WhyInvalid, HoldsEachNeedOfEachRow) {
  int needs = 0;
  for (const ToggleRow& row : kToggles) {
    for (const ToggleField need : row.needs) {
      if (need == nullptr) continue;
      ++needs;
      Config config;
      AddNeedsBut(row.field, need, &config);
      config.*row.field = row.levels.values[1];
      const InvalidReason reason = WhyInvalid(config);
      EXPECT_EQ(reason.kind, Kind::kMissingRequirement) << ConfigName(config);
      EXPECT_EQ(reason.missing, ToggleId(need)) << ConfigName(config);
    }
  }
  EXPECT_GT(needs, 0);
}

TEST(WhyInvalid, AgreesWithAPlainReadingOfTheNeedsOnEveryCombination) {
  int legal = 0;
  const std::vector<Exclusion> exclusions = AllExclusions();
  for (const Config& config : AllConfigs()) {
    bool expected = true;
    for (const ToggleRow& row : kToggles) {
      for (const ToggleField need : row.needs) {
        if (need != nullptr && config.*row.field != 0 && config.*need == 0) expected = false;
      }
      for (const ToggleField other : row.excludes) {
        if (other != nullptr && config.*row.field != 0 && config.*other != 0) expected = false;
      }
      const bool of_family = row.control || Includes(row.families, FamilyOf(config));
      if (config.*row.field != 0 && !of_family) expected = false;
    }
    for (const Exclusion& rule : exclusions) {
      const int other = config.*rule.other;
      if (config.*rule.toggle >= rule.from && rule.other_from <= other && other <= rule.other_to) {
        expected = false;
      }
    }
    if (expected && FamilyOf(config) == Family::kSmem &&
        smem::MakeSmemLayout(config).bytes > 227 * 1024) {
      expected = false;
    }
    EXPECT_EQ(!WhyInvalid(config), expected) << ConfigName(config);
    legal += expected ? 1 : 0;
  }
  EXPECT_GT(legal, 10);
}

TEST(WhyInvalid, GivesTheReasonOfEachExclusion) {
  int rules = 0;
  for (const Exclusion& rule : AllExclusions()) {
    ++rules;
    EXPECT_GT(rule.why.size(), 20u);
    for (const ToggleField field : {rule.toggle, rule.other}) EXPECT_NE(ToggleId(field), "");
    Config config = LastStep();
    if (rule.toggle == &Config::xor_swizzle) config.wmma_qk = config.wmma_pv = 0;
    if (rule.toggle == &Config::fuse_projection) config = {.mma_sync = 1, .project_mma = 1};
    if (rule.toggle == &Config::mma_bulk_copy) config = {.mma_sync = 1, .mma_cp_async_stages = 2};
    if (rule.toggle == &Config::wgmma_exp || rule.toggle == &Config::wgmma_lazy_rescale) {
      config = {.wgmma = 1, .consumer_warpgroups = 1};
    }
    for (const ToggleRow& row : kToggles) {
      if (row.field == rule.toggle) config.*row.field = std::max(rule.from, row.levels.values[1]);
    }
    EXPECT_FALSE(WhyInvalid(config)) << ConfigName(config);
    config.*rule.other = std::max(rule.other_from, 1);
    const InvalidReason reason = WhyInvalid(config);
    EXPECT_EQ(reason.kind, Kind::kExcluded) << ConfigName(config);
    EXPECT_EQ(reason.toggle, ToggleId(rule.toggle));
    EXPECT_EQ(reason.missing, ToggleId(rule.other));
    EXPECT_EQ(reason.why, rule.why);
  }
  EXPECT_GT(rules, 0);
}

// Tiles of the same toggles are twice as large at twice the head_dim.
TEST(WhyInvalid, RefusesTilesThatSharedMemoryCanNotHold) {
  Config config = LastStep();
  config.tile_n = 128;
  config.cp_async_stages = 3;
  EXPECT_FALSE(WhyInvalid(config));
  const InvalidReason reason = WhyInvalid(Specialise(config, 128, false));
  EXPECT_EQ(reason.kind, Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "cp_async_stages");
  EXPECT_EQ(reason.missing, "head_dim=128");
  EXPECT_THAT(std::string(reason.why), ::testing::HasSubstr("227 KiB"));
  config.cp_async_stages = 2;
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
  EXPECT_EQ(WhyInvalid(Specialise(config, 256, false)).toggle, "tile_n");
  config.tile_m = 128;
  EXPECT_EQ(WhyInvalid(Specialise(config, 128, false)).toggle, "tile_m");
}

// The toggle that is named is on, so that there is something to take off.
TEST(WhyInvalid, NamesAToggleThatIsOnWhereSharedMemoryIsTooSmall) {
  int refused = 0;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kSmem) continue;
    for (const int head_dim : kHeadDims) {
      const Config compiled = Specialise(config, head_dim, false);
      const InvalidReason reason = WhyInvalid(compiled);
      EXPECT_EQ(static_cast<bool>(reason), GeometryOf(compiled).smem_bytes > 227 * 1024)
          << InstanceName(compiled);
      if (!reason) continue;
      ++refused;
      for (const ToggleRow& row : kToggles) {
        if (row.id != reason.toggle) continue;
        EXPECT_GT(config.*row.field, 0) << InstanceName(compiled);
      }
      EXPECT_EQ(reason.missing, "head_dim=" + std::to_string(head_dim));
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(WhyInvalid, IsAConstantExpression) {
  static_assert(!WhyInvalid(Config{}));
  static_assert(WhyInvalid(Config{.wmma_pv = 1}));
}

TEST(WhyInvalid, NamesTheToggleThatAnotherExcludes) {
  const InvalidReason reason = WhyInvalid(
      {.mma_sync = 1, .mma_cp_async_stages = 2, .mma_key_groups = 2, .mma_producer_warps = 1});
  EXPECT_EQ(reason.kind, Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "mma_producer_warps");
  EXPECT_EQ(reason.missing, "mma_key_groups");
}

TEST(WhyInvalid, LetsTheProducersToggleOfHopperStandOnlyWhereTheirKernelsExist) {
  const Config two_warpgroups = {
      .wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1, .wgmma_tile = 1};
  Config equal = two_warpgroups;
  equal.wgmma_equal_registers = 1;
  EXPECT_FALSE(WhyInvalid(Specialise(equal, 64, false)));
  for (const int head_dim : {128, 256}) {
    const InvalidReason reason = WhyInvalid(Specialise(equal, head_dim, false));
    EXPECT_EQ(reason.kind, Kind::kExcluded);
    EXPECT_EQ(reason.toggle, "wgmma_equal_registers");
  }
  equal.wgmma_tile = 2;
  EXPECT_TRUE(WhyInvalid(Specialise(equal, 64, false)));
  for (const auto field : {&Config::wgmma_cp_async, &Config::wgmma_tile_per_cta,
                           &Config::wgmma_inline_loads, &Config::wgmma_mask_all}) {
    Config config = two_warpgroups;
    config.*field = 1;
    EXPECT_FALSE(WhyInvalid(config)) << ConfigName(config);
    config.dynamic_schedule = 1;
    // Whoever draws tiles from the counter is the producer of a persistent CTA.
    EXPECT_EQ(static_cast<bool>(WhyInvalid(config)), field != &Config::wgmma_mask_all)
        << ConfigName(config);
  }
  Config both = two_warpgroups;
  both.wgmma_cp_async = 1;
  both.wgmma_inline_loads = 1;
  EXPECT_TRUE(WhyInvalid(both));
  both.wgmma_inline_loads = 0;
  both.kv_ring_stages = 0;
  EXPECT_TRUE(WhyInvalid(both));
}

TEST(WhyInvalid, RefusesARingAsDeepAsTheTilesOwn) {
  Config config = {.wgmma = 1, .kv_ring_stages = 3, .consumer_warpgroups = 1};
  EXPECT_FALSE(WhyInvalid(Specialise(config, 64, false)));  // of four
  const InvalidReason reason = WhyInvalid(Specialise(config, 128, false));
  EXPECT_EQ(reason.kind, Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "kv_ring_stages");
  EXPECT_EQ(reason.missing, "head_dim=128");
  config.kv_ring_stages = 2;
  EXPECT_TRUE(WhyInvalid(Specialise(config, 128, false)));
  config.wgmma_tile = 1;  // has three
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
}

TEST(WhyInvalid, LetsMoreRegistersGoToTwoWarpgroupsAlone) {
  Config config = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_more_registers = 1};
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
  EXPECT_FALSE(WhyInvalid(Specialise(config, 256, false)));
  const InvalidReason reason = WhyInvalid(Specialise(config, 64, false));
  EXPECT_EQ(reason.kind, Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "wgmma_more_registers");
  config.wgmma_tile = 1;
  EXPECT_FALSE(WhyInvalid(Specialise(config, 64, false)));
  config.wgmma_cp_async = 1;
  EXPECT_TRUE(WhyInvalid(Specialise(config, 64, false)));
}

TEST(WhyInvalid, GivesOneWarpgroupOfRowsItsOwnTilesAlone) {
  for (const int level : {1, 2, 3, 4}) {
    const Config config = {.wgmma = 1, .wgmma_tile = level};
    const InvalidReason reason = WhyInvalid(config);
    EXPECT_EQ(static_cast<bool>(reason), level != 3) << level;
    if (level != 3) {
      EXPECT_EQ(reason.toggle, "wgmma_tile");
    }
  }
}

TEST(WhyInvalid, SharesKeysAmongCtasOfOneTileEach) {
  Config config = {.wgmma = 1, .wgmma_split_kv = 1};
  EXPECT_EQ(WhyInvalid(config).missing, "wgmma_tile_per_cta");
  config.wgmma_tile_per_cta = 1;
  EXPECT_FALSE(WhyInvalid(config));
  config.wgmma_pack_heads = 1;
  EXPECT_FALSE(WhyInvalid(config));
  config.tma_store = 1;
  EXPECT_TRUE(WhyInvalid(config));
}

TEST(WhyInvalid, JoinsByAKernelOnlyWhereCtasLeaveParts) {
  Config config = {.wgmma = 1, .wgmma_tile_per_cta = 1, .wgmma_join_kernel = 1};
  EXPECT_EQ(WhyInvalid(config).missing, "wgmma_split_kv");
  config.wgmma_split_kv = 1;
  EXPECT_FALSE(WhyInvalid(config));
}

TEST(WhyInvalid, JoinsThroughAClusterOrByAKernel) {
  Config config = {.wgmma = 1, .wgmma_tile_per_cta = 1, .wgmma_cluster_join = 1};
  EXPECT_EQ(WhyInvalid(config).missing, "wgmma_split_kv");
  config.wgmma_split_kv = 1;
  EXPECT_FALSE(WhyInvalid(config));
  config.wgmma_join_kernel = 1;
  EXPECT_TRUE(WhyInvalid(config));
}

TEST(WhyInvalid, WaitsLateOnlyForProductsBesideSoftmax) {
  Config config = {.wgmma = 1, .wgmma_late_wait = 2};
  EXPECT_EQ(WhyInvalid(config).missing, "softmax_overlap");
  config.softmax_overlap = 1;
  EXPECT_FALSE(WhyInvalid(config));
}

TEST(WhyInvalid, LeavesHalfPrecisionExponentialsAndThePolynomialToFp16) {
  for (const int method : {1, 2, 3}) {
    const Config config = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_exp = method};
    EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
    EXPECT_EQ(static_cast<bool>(WhyInvalid(Specialise(config, 128, false, Dtype::kBf16))),
              method != 2);
    Config fp8 = config;
    fp8.wgmma_fp8 = 1;
    EXPECT_EQ(static_cast<bool>(WhyInvalid(Specialise(fp8, 128, false))), method != 1);
  }
}

TEST(WhyInvalid, LeavesTheRowsOfOToAClusterOnlyWhereTheRingHoldsThem) {
  const auto joins = [](int consumers, int ring, int head_dim) {
    return Specialise({.wgmma = 1,
                       .kv_ring_stages = ring,
                       .consumer_warpgroups = consumers,
                       .wgmma_tile_per_cta = 1,
                       .wgmma_split_kv = 1,
                       .wgmma_cluster_join = 1},
                      head_dim, false);
  };
  EXPECT_FALSE(WhyInvalid(joins(0, 1, 128)));
  const InvalidReason reason = WhyInvalid(joins(1, 0, 128));
  EXPECT_EQ(reason.toggle, "wgmma_cluster_join");
  EXPECT_EQ(reason.missing, "head_dim=128");
}

TEST(WhyInvalid, RefusesToTakeStagesForPInSharedMemory) {
  const auto with_p = [](int tile, int head_dim) {
    return Specialise({.wgmma = 1,
                       .kv_ring_stages = 1,
                       .softmax_overlap = 1,
                       .consumer_warpgroups = 1,
                       .wgmma_tile = tile,
                       .wgmma_p_smem = 1},
                      head_dim, false);
  };
  EXPECT_FALSE(WhyInvalid(with_p(0, 128)));
  EXPECT_EQ(WhyInvalid(with_p(1, 128)).toggle, "wgmma_p_smem");
  EXPECT_FALSE(WhyInvalid(with_p(0, 256)));
  EXPECT_EQ(WhyInvalid(with_p(1, 256)).toggle, "wgmma_tile");
}

TEST(WhyInvalid, LetsNoPolynomialMeetRowsThatHoldAnything) {
  Config config = {.wgmma = 1, .softmax_overlap = 1, .wgmma_late_wait = 1, .wgmma_pack_heads = 1};
  EXPECT_FALSE(WhyInvalid(config));
  config.wgmma_exp = 1;
  EXPECT_EQ(WhyInvalid(config).missing, "wgmma_pack_heads");
  config.wgmma_pack_heads = 0;
  EXPECT_FALSE(WhyInvalid(config));
}

TEST(WhyInvalid, RefusesTwoWarpgroupsOfResidentKeysThatSharedMemoryCanNotHold) {
  const Config config = {.wgmma = 1, .resident_kv = 1, .kv_warpgroups = 1};
  EXPECT_FALSE(WhyInvalid(Specialise(config, 64, false)));
  EXPECT_EQ(WhyInvalid(Specialise(config, 256, false)).toggle, "kv_warpgroups");
}

TEST(WhyInvalid, KeepsTheFamiliesApart) {
  const InvalidReason reason = WhyInvalid(Config{.kv_tiling = 1, .wgmma = 1});
  EXPECT_EQ(reason.kind, InvalidReason::Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "kv_tiling");
  EXPECT_EQ(reason.missing, "wgmma");
  EXPECT_FALSE(WhyInvalid(Config{.wgmma = 1, .null_toggle = 1}));
}

}  // namespace
}  // namespace warpledger::sdpa
