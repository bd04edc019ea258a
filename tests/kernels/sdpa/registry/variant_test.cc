// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/registry/variant.h"

#include <map>
#include <regex>

#include "gtest/gtest.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa {
namespace {

TEST(ConfigName, OfEverythingOffIsTheBaselines) {
  EXPECT_EQ(ConfigName(Config{}), "minimal_scalar");
  EXPECT_EQ(ConfigName(Config{}), kBaseline.id);
}

TEST(ConfigName, JoinsTheTogglesThatAreOnInRegistryOrder) {
  EXPECT_EQ(ConfigName({.kv_tiling = 1}), "kv_tiling");
  Config config;
  config.warp_shuffle = 1;  // set in another order
  config.kv_tiling = 1;
  EXPECT_EQ(ConfigName(config), "kv_tiling+warp_shuffle");
}

TEST(ConfigName, LeavesOutTheFirstOnLevelAndSpellsOutOthers) {
  EXPECT_EQ(ConfigName({.cp_async_stages = 2}), "cp_async_stages");
  EXPECT_EQ(ConfigName({.kv_tiling = 1, .cp_async_stages = 3, .wmma_pv = 1}),
            "kv_tiling+cp_async_stages=3+wmma_pv");
}

TEST(ConfigFromName, ReadsWhatConfigNamePrints) {
  for (const Config& config : AllConfigs()) {
    EXPECT_EQ(ConfigFromName(ConfigName(config)), config) << ConfigName(config);
  }
}

TEST(ConfigFromName, ReadsNothingThatTheRegistryDoesntHave) {
  for (const char* name :
       {"", "kv_tiling+", "+kv_tiling", "no_such_toggle", "kv_tiling+no_such_toggle", "kv_tiling=7",
        "kv_tiling=1", "kv_tiling=", "cp_async_stages=3x", "minimal_scalar+kv_tiling"}) {
    EXPECT_EQ(ConfigFromName(name), std::nullopt) << name;
    EXPECT_EQ(CompiledName(name, Mask::kFull), name);
  }
}

TEST(ConfigName, IsAnotherForEachConfiguration) {
  std::map<std::string, Config> names;
  for (const Config& config : AllConfigs()) {
    const auto [at, is_new] = names.emplace(ConfigName(config), config);
    EXPECT_EQ(at->second, config) << ConfigName(config);
  }
  EXPECT_GT(names.size(), 100u);
}

// What reaches no machine code is not in the instance's name, whose code is that without.
TEST(CompiledPart, LeavesTogglesThatReachTheCodeAsTheyAre) {
  for (const Mask mask : {Mask::kFull, Mask::kCausal}) {
    for (Config config : AllConfigs()) {
      config.mask = mask;
      const Config compiled = CompiledPart(config);
      EXPECT_EQ(CompiledPart(compiled), compiled);
      EXPECT_EQ(CompiledName(ConfigName(config), mask), ConfigName(compiled));
      for (const ToggleRow& row : kToggles) {
        const bool nothing_to_do = row.causal_only && mask == Mask::kFull;
        if (!row.launch_side && !nothing_to_do) {
          EXPECT_EQ(compiled.*row.field, config.*row.field) << row.id;
        } else if (row.code_side_with == nullptr) {
          EXPECT_EQ(compiled.*row.field, 0) << row.id;
        }
      }
    }
  }
}

// A kernel that is compiled for both masks at once can't leave it out.
TEST(CompiledPart, HasTogglesForTheCausalMaskInFamiliesThatAreCompiledForEachMask) {
  int configs = 0;
  for (const Config& config : LegalConfigs()) {
    for (const ToggleRow& row : kToggles) {
      if (!row.causal_only || config.*row.field == 0) continue;
      ++configs;
      EXPECT_FALSE(AskFamily(config, [](auto family) { return family.kMaskAtRunTime; })) << row.id;
    }
  }
  EXPECT_GT(configs, 0);
}

TEST(InstanceSymbol, ReadsLikeTheName) {
  EXPECT_EQ(InstanceSymbol(Config{}), "sdpa_minimal_scalar");
  EXPECT_EQ(InstanceSymbol({.kv_tiling = 1, .warp_shuffle = 1}), "sdpa_kv_tiling__warp_shuffle");
  EXPECT_EQ(InstanceSymbol({.cp_async_stages = 3}), "sdpa_cp_async_stages_3");
}

TEST(InstanceSymbol, IsACppIdentifierAndAnotherForEachConfiguration) {
  const std::regex identifier("[a-z][a-z0-9_]*");
  std::map<std::string, Config> symbols;
  for (const Config& config : AllConfigs()) {
    const std::string symbol = InstanceSymbol(config);
    EXPECT_TRUE(std::regex_match(symbol, identifier)) << symbol;
    const auto [at, is_new] = symbols.emplace(symbol, config);
    EXPECT_EQ(at->second, config) << symbol;
    EXPECT_LT(symbol.size() + std::string(".cubin").size(), 255u) << "too long for a file name";
  }
}

TEST(InstanceName, SaysWhatTheProblemFixedWhereItIsNotTheDefault) {
  const Config config = {.wgmma = 1};
  EXPECT_EQ(InstanceName(Specialise(config, 64, false)), "wgmma");
  EXPECT_EQ(InstanceName(Specialise(config, 64, false, Dtype::kBf16)), "wgmma@bf16");
  EXPECT_EQ(InstanceName(Specialise(config, 64, true, Dtype::kBf16)), "wgmma@bf16_causal");
  EXPECT_EQ(InstanceName(Specialise(config, 128, true)), "wgmma@d128_causal");
  EXPECT_EQ(InstanceName(Specialise(config, 128, true, Dtype::kBf16)), "wgmma@d128_bf16_causal");
  Config fp8 = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_fp8 = 1};
  fp8.scale_strides = true;
  EXPECT_EQ(InstanceName(Specialise(fp8, 128, true)),
            "wgmma+consumer_warpgroups+wgmma_fp8@d128_causal_scale_strides");
  const Config strided = {.mma_sync = 1, .varlen = true, .strided = true};
  EXPECT_EQ(InstanceName(Specialise(strided, 128, true)), "mma_sync@d128_varlen_strided");
}

}  // namespace
}  // namespace warpledger::sdpa
