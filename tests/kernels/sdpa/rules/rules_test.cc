// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/rules/rules.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "kernels/sdpa/problem/problem.h"
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

TEST(WhyInvalid, RefusesStridesOfScalesWhereThereAreNone) {
  Config config = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_fp8 = 1, .scale_strides = true};
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
  config.wgmma_fp8 = 0;
  for (const Config& of_16_bits : {config, Config{.scale_strides = true}}) {
    const InvalidReason reason = WhyInvalid(of_16_bits);
    EXPECT_EQ(reason.toggle, "scale_strides");
    EXPECT_EQ(reason.why, "16-bit operands have no scales");
  }
}

TEST(WhyInvalid, RefusesStridesWhereAKernelReadsOtherTensors) {
  Config config = {.mma_sync = 1, .mma_v_ldmatrix_trans = 1, .mma_p_registers = 1, .strided = true};
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
  config.varlen = true;
  EXPECT_FALSE(WhyInvalid(Specialise(config, 128, false)));
  config.strided = false;
  EXPECT_EQ(WhyInvalid(config).toggle, "varlen") << "mma's sequences need strides";
  const auto refused = [](Config strided, std::string_view what, std::string_view why) {
    strided.strided = true;
    const InvalidReason reason = WhyInvalid(strided);
    EXPECT_EQ(reason.toggle, "strided");
    EXPECT_EQ(reason.missing, what);
    EXPECT_EQ(reason.why, why);
  };
  refused({.wgmma = 1, .consumer_warpgroups = 1}, "wgmma", "its tensor maps have strides");
  config.varlen = false;
  config.mma_kv_dtype = 1;
  refused(config, "mma_kv_dtype", "it reads tensors of its own without gaps");
  config.mma_kv_dtype = 0;
  config.projected = true;
  refused(config, "a projection", "it reads tensors of its own without gaps");
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
    // The tiles of one warpgroup of rows: the wgmma family's own rule.
    if (config.wgmma_tile != 0 && config.wgmma_tile != 3 && config.consumer_warpgroups == 0) {
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
    if (rule.toggle == &Config::wgmma_skip_maxima) {
      config = {.wgmma = 1, .softmax_overlap = 1, .wgmma_lazy_rescale = 1, .wgmma_thread_max = 1};
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
      EXPECT_THAT(std::string(reason.why), ::testing::HasSubstr("227 KiB"));
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(WhyInvalid, IsAConstantExpression) {
  static_assert(!WhyInvalid(Config{}));
  static_assert(WhyInvalid(Config{.wmma_pv = 1}));
}

// A configuration, what a problem fixes of it, and what is wrong with it there.
struct Ruling {
  const char* config;
  int head_dim;  // 0: none yet
  const char* reason;
  bool causal = false;
  Dtype dtype = Dtype::kFp16;
};
const Ruling kRulings[] = {
    // What it lacks.
    {"tile_m32_warps4", 0, "tile_m32_warps4 needs kv_tiling"},
    {"kv_tiling+cp_async_stages", 0, "cp_async_stages needs vector_loads"},
    // Two toggles of which one excludes the other, and those of two families.
    {"mma_sync+mma_cp_async_stages+mma_key_groups+mma_producer_warps", 0,
     "mma_producer_warps without mma_key_groups"},
    {"kv_tiling+wgmma", 0, "kv_tiling without wgmma"},
    {"wgmma+null_toggle", 0, ""},
    {"wgmma+kv_ring_stages+resident_kv", 0, "kv_ring_stages without resident_kv"},
    {"wgmma+resident_kv+fp16_exchange", 0, "fp16_exchange needs cluster_split_kv"},
    // Tiles of the same toggles are twice as large at twice the head_dim.
    {"kv_tiling+tile_m32_warps4+warp_shuffle+vector_loads+wmma_qk+cp_async_stages=3+wmma_pv+tile_n="
     "128",
     0, ""},
    {"kv_tiling+tile_m32_warps4+warp_shuffle+vector_loads+wmma_qk+cp_async_stages=3+wmma_pv+tile_n="
     "128",
     128, "cp_async_stages without head_dim=128"},
    {"kv_tiling+tile_m32_warps4+warp_shuffle+vector_loads+wmma_qk+cp_async_stages+wmma_pv+tile_n="
     "128",
     128, ""},
    {"kv_tiling+tile_m32_warps4+warp_shuffle+vector_loads+wmma_qk+cp_async_stages+wmma_pv+tile_n="
     "128",
     256, "tile_n without head_dim=256"},
    {"kv_tiling+tile_m32_warps4+warp_shuffle+vector_loads+wmma_qk+cp_async_stages+wmma_pv+tile_m="
     "128+tile_n=128",
     128, "tile_m without head_dim=128"},
    {"wgmma+resident_kv+kv_warpgroups", 64, ""},
    {"wgmma+resident_kv+kv_warpgroups", 256, "kv_warpgroups without head_dim=256"},
    // FP8 at each head_dim, with tiles of its own.
    {"wgmma+consumer_warpgroups+wgmma_fp8", 0, ""},
    {"wgmma+consumer_warpgroups+wgmma_fp8", 128, "", true},
    {"wgmma+consumer_warpgroups+wgmma_fp8", 64, "", true},
    {"wgmma+consumer_warpgroups+wgmma_fp8", 256, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_fp8", 0, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_fp8", 64, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile=2+wgmma_fp8", 64, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile=3+wgmma_fp8", 0, "wgmma_tile without wgmma_fp8"},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_fp8", 128, "wgmma_tile without head_dim=128"},
    {"wgmma+consumer_warpgroups+wgmma_tile=2+wgmma_fp8", 128, "wgmma_tile without head_dim=128"},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_fp8", 256, "wgmma_tile without head_dim=256"},
    {"wgmma+consumer_warpgroups+wgmma_tile=2+wgmma_fp8", 256, ""},
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+wgmma_tile=2+wgmma_fp8", 256,
     "wgmma_tile without softmax_overlap"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+tma_store+wgmma_fp8", 256, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_fp8+wgmma_fp8_output", 256, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+tma_store+wgmma_fp8+wgmma_fp8_output", 256,
     "wgmma_fp8_output without tma_store"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_fp8_output", 256,
     "wgmma_fp8_output needs wgmma_fp8"},
    // A tile's keys share a scale.
    {"wgmma+consumer_warpgroups+wgmma_fp8+wgmma_fp8_two_level+wgmma_fp8_block_scale", 64,
     "wgmma_fp8_block_scale without head_dim=64"},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_fp8+wgmma_fp8_two_level+wgmma_fp8_block_scale", 64,
     ""},
    {"wgmma+consumer_warpgroups+wgmma_fp8+wgmma_fp8_two_level+wgmma_fp8_block_scale", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_fp8+wgmma_fp8_two_level+wgmma_fp8_block_scale", 256, ""},
    // Producers of Hopper only where their kernels exist. Whoever draws tiles from the counter is
    // the producer of a persistent CTA.
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_equal_registers", 64, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_equal_registers", 128,
     "wgmma_equal_registers without head_dim=128"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_equal_registers", 256,
     "wgmma_equal_registers without head_dim=256"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile=2+wgmma_equal_registers", 64,
     "wgmma_equal_registers without head_dim=64"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_cp_async", 0, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+dynamic_schedule+wgmma_tile+wgmma_cp_async", 0,
     "wgmma_cp_async without dynamic_schedule"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_tile_per_cta", 0, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+dynamic_schedule+wgmma_tile+wgmma_tile_per_cta", 0,
     "wgmma_tile_per_cta without dynamic_schedule"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_inline_loads", 0, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+dynamic_schedule+wgmma_tile+wgmma_inline_loads", 0,
     "wgmma_inline_loads without dynamic_schedule"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_mask_all", 0, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+dynamic_schedule+wgmma_tile+wgmma_mask_all", 0, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+wgmma_cp_async+wgmma_inline_loads", 0,
     "wgmma_inline_loads without wgmma_cp_async"},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_cp_async", 0,
     "wgmma_cp_async needs kv_ring_stages"},
    // A ring is no deeper than the tile's own: four stages, two, and three.
    {"wgmma+kv_ring_stages=3+consumer_warpgroups", 64, ""},
    {"wgmma+kv_ring_stages=3+consumer_warpgroups", 128, "kv_ring_stages without head_dim=128"},
    {"wgmma+kv_ring_stages=2+consumer_warpgroups", 128, "kv_ring_stages without head_dim=128"},
    {"wgmma+kv_ring_stages=2+consumer_warpgroups+wgmma_tile", 128, ""},
    // More registers go to two warpgroups alone.
    {"wgmma+consumer_warpgroups+wgmma_more_registers", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_more_registers", 256, ""},
    {"wgmma+consumer_warpgroups+wgmma_more_registers", 64,
     "wgmma_more_registers without head_dim=64"},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_more_registers", 64, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile+wgmma_cp_async+wgmma_more_registers", 64,
     "wgmma_cp_async needs kv_ring_stages"},
    // One warpgroup of rows has its own tiles alone, and head_dim 256 none from level 2 on.
    {"wgmma+wgmma_tile", 0, "wgmma_tile without one warpgroup of rows"},
    {"wgmma+wgmma_tile=2", 0, "wgmma_tile without one warpgroup of rows"},
    {"wgmma+wgmma_tile=3", 0, ""},
    {"wgmma+wgmma_tile=4", 0, "wgmma_tile without one warpgroup of rows"},
    {"wgmma+consumer_warpgroups+wgmma_tile=2", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile=2", 256, "wgmma_tile without head_dim=256"},
    {"wgmma+consumer_warpgroups+wgmma_tile=3", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile=3", 256, "wgmma_tile without head_dim=256"},
    {"wgmma+consumer_warpgroups+wgmma_tile=4", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile=4", 256, "wgmma_tile without head_dim=256"},
    // CTAs of one tile each share its keys, and join what they leave through a cluster or by a
    // kernel.
    {"wgmma+wgmma_split_kv", 0, "wgmma_split_kv needs wgmma_tile_per_cta"},
    {"wgmma+wgmma_tile_per_cta+wgmma_split_kv", 0, ""},
    {"wgmma+wgmma_tile_per_cta+wgmma_pack_heads+wgmma_split_kv", 0, ""},
    {"wgmma+tma_store+wgmma_tile_per_cta+wgmma_pack_heads+wgmma_split_kv", 0,
     "wgmma_pack_heads without tma_store"},
    {"wgmma+wgmma_tile_per_cta+wgmma_join_kernel", 0, "wgmma_join_kernel needs wgmma_split_kv"},
    {"wgmma+wgmma_tile_per_cta+wgmma_split_kv+wgmma_join_kernel", 0, ""},
    {"wgmma+wgmma_tile_per_cta+wgmma_cluster_join", 0, "wgmma_cluster_join needs wgmma_split_kv"},
    {"wgmma+wgmma_tile_per_cta+wgmma_split_kv+wgmma_cluster_join", 0, ""},
    {"wgmma+wgmma_tile_per_cta+wgmma_split_kv+wgmma_join_kernel+wgmma_cluster_join", 0,
     "wgmma_cluster_join without wgmma_join_kernel"},
    // The ring holds the rows of O that a cluster joins.
    {"wgmma+kv_ring_stages+wgmma_tile_per_cta+wgmma_split_kv+wgmma_cluster_join", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_tile_per_cta+wgmma_split_kv+wgmma_cluster_join", 128,
     "wgmma_cluster_join without head_dim=128"},
    // P in shared memory takes no stage.
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+wgmma_p_smem", 128, ""},
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+wgmma_tile+wgmma_p_smem", 128,
     "wgmma_p_smem without wgmma_tile"},
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+wgmma_p_smem", 256, ""},
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+wgmma_tile+wgmma_p_smem", 256,
     "wgmma_tile without head_dim=256"},
    // A late wait is for products beside softmax; no polynomial meets rows that hold anything.
    {"wgmma+wgmma_late_wait=2", 0, "wgmma_late_wait needs softmax_overlap"},
    {"wgmma+softmax_overlap+wgmma_late_wait=2", 0, ""},
    {"wgmma+softmax_overlap+wgmma_late_wait+wgmma_pack_heads", 0, ""},
    {"wgmma+softmax_overlap+wgmma_late_wait+wgmma_exp+wgmma_pack_heads", 0,
     "wgmma_late_wait without wgmma_pack_heads"},
    {"wgmma+softmax_overlap+wgmma_late_wait+wgmma_exp", 0, ""},
    // Q in registers needs some, and O a place other than Q's.
    {"wgmma+consumer_warpgroups+wgmma_q_registers", 64, ""},
    {"wgmma+consumer_warpgroups+wgmma_q_registers", 256, "wgmma_q_registers without head_dim=256"},
    {"wgmma+kv_ring_stages+consumer_warpgroups+tma_store+wgmma_q_registers", 128, ""},
    {"wgmma+kv_ring_stages+consumer_warpgroups+wgmma_tile+tma_store+wgmma_q_registers", 128,
     "wgmma_q_registers without tma_store"},
    {"wgmma+wgmma_q_registers", 64, "wgmma_q_registers needs consumer_warpgroups"},
    {"wgmma+softmax_overlap+consumer_warpgroups+dynamic_schedule+wgmma_keep_kv", 64, ""},
    {"wgmma+softmax_overlap+consumer_warpgroups+dynamic_schedule+kv_multicast", 128, ""},
    {"wgmma+softmax_overlap+consumer_warpgroups+dynamic_schedule+kv_multicast+wgmma_keep_kv", 64,
     "kv_multicast without wgmma_keep_kv"},
    {"wgmma+softmax_overlap+consumer_warpgroups+dynamic_schedule+wgmma_keep_kv", 128, ""},
    {"wgmma+softmax_overlap+consumer_warpgroups+dynamic_schedule+wgmma_keep_kv", 256,
     "wgmma_keep_kv without head_dim=256"},
    {"wgmma+kv_ring_stages+softmax_overlap+consumer_warpgroups+dynamic_schedule+tma_store+"
     "wgmma_keep_kv",
     128, "wgmma_keep_kv without tma_store"},
    {"wgmma+softmax_overlap+consumer_warpgroups+wgmma_own_tiles", 0, ""},
    {"wgmma+consumer_warpgroups+wgmma_own_tiles", 0, "wgmma_own_tiles needs softmax_overlap"},
    {"wgmma+softmax_overlap+wgmma_own_tiles", 0, "wgmma_own_tiles needs consumer_warpgroups"},
    // Sums tell of maxima only where there is something to rise above.
    {"wgmma+softmax_overlap+wgmma_lazy_rescale+wgmma_thread_max+wgmma_skip_maxima", 0, ""},
    {"wgmma+softmax_overlap+wgmma_lazy_rescale+wgmma_skip_maxima", 0,
     "wgmma_skip_maxima needs wgmma_thread_max"},
    {"wgmma+softmax_overlap+wgmma_lazy_rescale+wgmma_thread_max+wgmma_skip_maxima+wgmma_exp", 0,
     "wgmma_skip_maxima without wgmma_exp"},
    {"wgmma+softmax_overlap+wgmma_lazy_rescale+wgmma_thread_max+wgmma_skip_maxima+wgmma_exp=2", 0,
     ""},
    {"wgmma+softmax_overlap+wgmma_late_wait+wgmma_lazy_rescale+wgmma_thread_max+wgmma_skip_maxima",
     0, "wgmma_skip_maxima without wgmma_late_wait"},
    {"wgmma+softmax_overlap+consumer_warpgroups+wgmma_keep_kv", 64,
     "wgmma_keep_kv needs dynamic_schedule"},
    // Half-precision exponentials and the polynomial are for fp16.
    {"wgmma+consumer_warpgroups+wgmma_exp", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_exp", 128, "wgmma_exp without bf16", false, Dtype::kBf16},
    {"wgmma+consumer_warpgroups+wgmma_exp+wgmma_fp8", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_exp=2", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_exp=2", 128, "", false, Dtype::kBf16},
    {"wgmma+consumer_warpgroups+wgmma_exp=2+wgmma_fp8", 128, "wgmma_exp without wgmma_fp8"},
    {"wgmma+consumer_warpgroups+wgmma_exp=3", 128, ""},
    {"wgmma+consumer_warpgroups+wgmma_exp=3", 128, "wgmma_exp without bf16", false, Dtype::kBf16},
    {"wgmma+consumer_warpgroups+wgmma_exp=3+wgmma_fp8", 128, "wgmma_exp without wgmma_fp8"},
};

std::string Describe(const InvalidReason& reason) {
  if (!reason) return "";
  const bool needs = reason.kind == Kind::kMissingRequirement;
  return std::string(reason.toggle) + (needs ? " needs " : " without ") +
         std::string(reason.missing);
}

TEST(WhyInvalid, NamesTheToggleAndWhatItNeedsOrMustDoWithout) {
  for (const Ruling& ruling : kRulings) {
    Config config = ConfigFromName(ruling.config).value();
    if (ruling.head_dim != 0) {
      config = Specialise(config, ruling.head_dim, ruling.causal, ruling.dtype);
    }
    EXPECT_EQ(Describe(WhyInvalid(config)), ruling.reason) << InstanceName(config);
  }
}

}  // namespace
}  // namespace warpledger::sdpa
