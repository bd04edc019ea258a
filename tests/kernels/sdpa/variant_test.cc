#include "kernels/sdpa/variant.h"

#include <regex>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/kernels/sdpa/all_configs.h"

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

TEST(ConfigName, IsAnotherForEachConfiguration) {
  std::set<std::string> names;
  for (const Config& config : AllConfigs()) {
    EXPECT_TRUE(names.insert(ConfigName(config)).second) << ConfigName(config);
  }
  EXPECT_GT(names.size(), 100u);
}

TEST(InstanceSymbol, ReadsLikeTheName) {
  EXPECT_EQ(InstanceSymbol(Config{}), "sdpa_minimal_scalar");
  EXPECT_EQ(InstanceSymbol({.kv_tiling = 1, .warp_shuffle = 1}), "sdpa_kv_tiling__warp_shuffle");
  EXPECT_EQ(InstanceSymbol({.cp_async_stages = 3}), "sdpa_cp_async_stages_3");
}

TEST(InstanceSymbol, IsACppIdentifierAndAnotherForEachConfiguration) {
  const std::regex identifier("[a-z][a-z0-9_]*");
  std::set<std::string> symbols;
  for (const Config& config : AllConfigs()) {
    const std::string symbol = InstanceSymbol(config);
    EXPECT_TRUE(std::regex_match(symbol, identifier)) << symbol;
    EXPECT_TRUE(symbols.insert(symbol).second) << symbol;
    EXPECT_LT(symbol.size() + std::string(".cubin").size(), 255u) << "too long for a file name";
  }
}

}  // namespace
}  // namespace warpledger::sdpa
