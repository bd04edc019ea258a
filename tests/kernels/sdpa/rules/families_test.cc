// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/rules/families.h"

#include <iterator>

#include "gtest/gtest.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/rules.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa {
namespace {

// What WhyInvalid lets through in bf16, the kernel can do.
TEST(Geometry, OfTheMmaFamilyIsLegalInBf16WhereTheRulesAllowIt) {
  int checked = 0;
  for (const Config& config : LegalConfigs()) {
    const Config bf16 = Specialise(config, 64, false, Dtype::kBf16);
    if (FamilyOf(config) != Family::kMma || WhyInvalid(bf16)) continue;
    EXPECT_TRUE(MmaShapeOf(bf16).bf16);
    EXPECT_STREQ(WhyIllegal(MmaShapeOf(bf16)), "") << ConfigName(config);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(Geometry, OfTheWgmmaFamilyIsTheSameInBf16) {
  int checked = 0;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kWgmma) continue;
    const ExpMethod exp = kWgmmaExpMethods[config.wgmma_exp];
    if (exp == ExpMethod::kExpHalfPairs || exp == ExpMethod::kExpMixed) continue;  // fp16 alone
    const int head_dim = config.wgmma_equal_registers ? 64 : 128;
    const Config bf16 = Specialise(config, head_dim, false, Dtype::kBf16);
    const bool legal = !WhyInvalid(Specialise(config, head_dim, false));
    ASSERT_EQ(!WhyInvalid(bf16), legal) << ConfigName(config);
    if (!legal) continue;
    WgmmaShape expected = WgmmaShapeOf(Specialise(config, head_dim, false));
    EXPECT_FALSE(expected.bf16);
    expected.bf16 = true;
    EXPECT_EQ(WgmmaShapeOf(bf16), expected) << ConfigName(config);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(Geometry, FollowsTheTogglesOneByOne) {
  struct Case {
    Config config;
    int tile_m, tile_n, threads, stages;
  };
  constexpr Config kThree = {.wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1};
  for (const Case& expected : {
           Case{{}, 1, 64, 64, 1},
           Case{{.kv_tiling = 1}, 16, 32, 64, 1},
           Case{{.kv_tiling = 1, .tile_m32_warps4 = 1}, 32, 32, 128, 1},
           Case{LastStep(), 32, 32, 128, 2},
           Case{{.wgmma = 1}, 64, 128, 256, 1},
           Case{kThree, 192, 112, 512, 4},
           Case{Specialise(kThree, 128, false), 128, 128, 384, 2},
           Case{Specialise(kThree, 256, true), 128, 80, 384, 2},
           Case{{.mma_sync = 1}, 64, 64, 128, 1},
           Case{{.mma_sync = 1, .mma_cp_async_stages = 3, .mma_tile = 1}, 128, 64, 128, 3},
           Case{{.mma_sync = 1, .mma_tile = 2, .mma_key_groups = 4}, 32, 64, 256, 1},
           Case{{.mma_sync = 1, .mma_cp_async_stages = 2, .mma_producer_warps = 2}, 64, 64, 192, 2},
       }) {
    SCOPED_TRACE(InstanceName(expected.config));
    const Geometry geometry = GeometryOf(expected.config);
    EXPECT_EQ(geometry.tile_m, expected.tile_m);
    EXPECT_EQ(geometry.tile_n, expected.tile_n);
    EXPECT_EQ(geometry.threads, expected.threads);
    EXPECT_EQ(geometry.stages, expected.stages);
    EXPECT_LE(geometry.smem_bytes, 227 * 1024);
  }
  EXPECT_EQ(FamilyOf({.mma_sync = 1}), Family::kMma);
}

// What the registry's rules allow, the kernel can do.
TEST(Geometry, OfTheMmaFamilyIsLegalForEveryLegalConfiguration) {
  int checked = 0;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kMma) continue;
    for (const int head_dim : {64, 128}) {
      const MmaShape shape = MmaShapeOf(Specialise(config, head_dim, false));
      EXPECT_STREQ(WhyIllegal(shape), "") << ConfigName(config);
      EXPECT_LE(Threads(shape), 1024) << ConfigName(config);
    }
    // Behind a projection, in kernels of its own.
    Config apart = config;
    apart.fuse_projection = 0;
    apart = Specialise(apart, 64, false, Dtype::kFp16, true);
    EXPECT_EQ(static_cast<bool>(WhyInvalid(apart)),
              apart.mma_kv_dtype != 0 || apart.mma_bulk_copy != 0)
        << ConfigName(config);
    if (!WhyInvalid(apart)) {
      EXPECT_STREQ(WhyIllegal(MmaShapeOf(apart)), "") << ConfigName(config);
    }
    ++checked;
  }
  EXPECT_GT(checked, 100);
  for (const ToggleRow& row : kToggles) {
    if (row.id != "mma_tile") continue;
    EXPECT_EQ(row.levels.count, std::size(kMmaTiles)) << "a level for each tile";
  }
}

TEST(Geometry, IsTheSameWithAndWithoutTheNullToggle) {
  for (const Config& config : LegalConfigs()) {
    Config planted = config;
    planted.null_toggle = 1 - config.null_toggle;
    EXPECT_EQ(GeometryOf(config), GeometryOf(planted));
  }
}

TEST(Geometry, LeavesEachThreadOfTheSmemFamilyTheRegistersOfItsOutputAtHeadDim128) {
  constexpr int kRegistersPerSm = 65536;
  for (const Config& narrow : LegalConfigs()) {
    if (FamilyOf(narrow) != Family::kSmem) continue;
    const Config config = Specialise(narrow, 128, false);
    ASSERT_GE(smem::MinCtasPerSm(config), 1) << InstanceName(config);
    const int registers = kRegistersPerSm / (smem::MinCtasPerSm(config) * smem::Threads(config));
    // A warp's 16 whole rows of O and its scores, and 64 for all else.
    const int scores = smem::TileM(config) * smem::TileN(config) / smem::Warps(config);
    const int kept = config.softmax_in_registers == 3 ? (16 * 128 + scores) / smem::kWarpSize : 0;
    EXPECT_GE(registers, kept + 64) << InstanceName(config);
  }
}

TEST(Geometry, LeavesEachThreadOfTheSmemFamilyItsRegistersOnAnSm) {
  constexpr int kRegistersPerSm = 65536;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kSmem) continue;
    ASSERT_GE(smem::MinCtasPerSm(config), 1) << ConfigName(config);
    const int registers = kRegistersPerSm / (smem::MinCtasPerSm(config) * smem::Threads(config));
    EXPECT_GE(registers, smem::RegisterBudget(config)) << ConfigName(config);
    if (config.producer_warps == 0 && config.tile_m != 48 && smem::RegisterBudget(config) == 128) {
      EXPECT_EQ(registers, 128) << ConfigName(config);
    }
  }
}

TEST(Geometry, IsOfWholeWarpsThatACtaMayHave) {
  for (const Config& config : LegalConfigs()) {
    EXPECT_LE(GeometryOf(config).threads, 1024) << ConfigName(config);
    EXPECT_EQ(GeometryOf(config).threads % 32, 0) << ConfigName(config);
  }
}

TEST(KvStorage, TakesQueriesTooWhereProductsAreOfFp8) {
  constexpr Config kFp8 = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_fp8 = 1};
  const KvStorage storage = KvStorageOf(kFp8);
  EXPECT_TRUE(storage.quantised);
  EXPECT_TRUE(storage.queries);
  EXPECT_EQ(storage.scheme.format, KvFormat::kE4m3);
  EXPECT_EQ(storage.scheme.scope, ScaleScope::kHead);
  Config two_level = kFp8;
  two_level.wgmma_fp8_two_level = 1;
  EXPECT_EQ(KvStorageOf(two_level), storage);
  EXPECT_FALSE(storage.output);
  Config output = kFp8;
  output.wgmma_fp8_output = 1;
  EXPECT_TRUE(KvStorageOf(output).output);
  EXPECT_TRUE(KvStorageOf(output).queries);
  two_level.wgmma_fp8_block_scale = 1;
  const KvStorage blocks = KvStorageOf(two_level);
  EXPECT_TRUE(blocks.queries);
  EXPECT_EQ(blocks.scheme.scope, ScaleScope::kBlock);
  // The same blocks for each head_dim, of whole tiles.
  EXPECT_EQ(blocks.scheme.block_keys, GeometryOf(Specialise(two_level, 128, false)).tile_n);
  EXPECT_EQ(blocks.scheme.block_keys % GeometryOf(Specialise(two_level, 256, false)).tile_n, 0);
}

TEST(KvStorage, FollowsItsTogglesAndTheTile) {
  EXPECT_FALSE(KvStorageOf(Config{}).quantised);
  EXPECT_FALSE(KvStorageOf({.mma_sync = 1}).quantised);
  Config config = {.mma_sync = 1, .mma_v_ldmatrix_trans = 1, .mma_kv_dtype = 2};
  EXPECT_EQ(KvStorageOf(config).scheme.format, KvFormat::kUint8);
  EXPECT_EQ(KvStorageOf(config).scheme.scope, ScaleScope::kHead);
  config.mma_kv_dtype = 1;
  Config table = config;
  table.mma_kv_dtype = 2;
  EXPECT_EQ(KvStorageOf(config), KvStorageOf(table)) << "the same codes";
  config.mma_kv_dtype = 3;
  config.mma_kv_block_scale = 1;
  config.mma_tile = 3;
  const KvStorage storage = KvStorageOf(config);
  EXPECT_EQ(storage.scheme.format, KvFormat::kE4m3);
  EXPECT_EQ(storage.scheme.scope, ScaleScope::kBlock);
  EXPECT_EQ(storage.scheme.block_keys, GeometryOf(config).tile_n);
}

// Where probabilities are 16-bit numbers before they are summed, in each family that can have
// it so, and nowhere else.
TEST(LseAllowance, IsForExponentialsOfHalves) {
  for (const int method : {0, 1, 2, 3, 4, 5}) {
    const double of_mma = LseAllowance({.mma_sync = 1, .mma_exp = method}, 1024);
    EXPECT_EQ(of_mma > 0, method == 3) << method;
    if (method > 3) continue;
    const double of_wgmma = LseAllowance({.wgmma = 1, .wgmma_exp = method}, 1024);
    EXPECT_EQ(of_wgmma > 0, method == 3) << method;
    if (method == 3) {
      EXPECT_EQ(of_wgmma, of_mma);
      EXPECT_LT(of_wgmma, 0.01);
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
