#include "kernels/sdpa/config.h"

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sdpa/kv_storage.h"
#include "kernels/sdpa/problem.h"
#include "kernels/sdpa/smem_layout.h"
#include "kernels/sdpa/variant.h"
#include "tests/kernels/sdpa/all_configs.h"

namespace warpledger::sdpa {
namespace {

using Kind = InvalidReason::Kind;

constexpr int kSmemWithoutOptIn = 48 * 1024;

bool IsKnownShape(std::string_view name) {
  return std::any_of(std::begin(kShapes), std::end(kShapes),
                     [&](const NamedShape& shape) { return shape.name == name; });
}

// --- The registry's rows -------------------------------------------------------

TEST(Registry, HasUniqueSnakeCaseIdsThatDoNotClashWithTheBaseline) {
  const std::regex snake_case("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  std::set<std::string> ids = {std::string(kBaseline.id)};
  std::set<std::string> labels = {std::string(kBaseline.label)};
  for (const ToggleRow& row : kToggles) {
    EXPECT_TRUE(std::regex_match(std::string(row.id), snake_case)) << row.id;
    EXPECT_TRUE(ids.insert(std::string(row.id)).second) << row.id << " stands twice";
    EXPECT_FALSE(row.label.empty()) << row.id;
    EXPECT_TRUE(labels.insert(std::string(row.label)).second) << row.label << " stands twice";
  }
}

TEST(Registry, TiesEachIdToItsOwnField) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_EQ(ToggleId(row.field), row.id);
    Config config;
    config.*row.field = row.levels.values[1];
    for (const ToggleRow& other : kToggles) {
      EXPECT_EQ(config.*other.field != 0, other.id == row.id) << row.id << ", " << other.id;
    }
  }
}

TEST(Registry, HasOffAsTheFirstLevelAndAscendingDistinctLevels) {
  for (const ToggleRow& row : kToggles) {
    ASSERT_GE(row.levels.count, 2u) << row.id << " can't be switched on";
    ASSERT_LE(row.levels.count, kMaxLevels) << row.id;
    EXPECT_EQ(row.levels.values[0], 0) << row.id;
    for (size_t i = 1; i < row.levels.count; ++i) {
      EXPECT_LT(row.levels.values[i - 1], row.levels.values[i]) << row.id;
    }
  }
}

// Or the ladder, which adds toggles in registry order, would have illegal steps.
TEST(Registry, NeedsOnlyTogglesThatComeEarlierAndAreNoControls) {
  std::set<std::string_view> earlier;
  for (const ToggleRow& row : kToggles) {
    for (const ToggleField need : row.needs) {
      if (need == nullptr) continue;
      EXPECT_TRUE(earlier.contains(ToggleId(need))) << row.id << " needs " << ToggleId(need);
    }
    if (!row.control) earlier.insert(row.id);
  }
}

TEST(Registry, SaysOfEachToggleWhatItClaims) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_GT(row.claim.size(), 20u) << row.id;
    EXPECT_TRUE(row.claim.ends_with('.')) << row.id << ": " << row.claim;
    EXPECT_FALSE(row.prior.text.empty()) << row.id;
  }
}

TEST(Registry, PredictsARangeAtAKnownShapeForEachToggle) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_TRUE(IsKnownShape(row.predicted.shape)) << row.id << ": " << row.predicted.shape;
    EXPECT_GT(row.predicted.low, 0) << row.id;
    EXPECT_LE(row.predicted.low, row.predicted.high) << row.id;
    EXPECT_FALSE(row.predicted.why.empty()) << row.id;
    // A factor of 10 either way would be a slip of the pen.
    EXPECT_LT(row.predicted.high, 10) << row.id;
    EXPECT_GT(row.predicted.low, 0.1) << row.id;
  }
}

TEST(WhyInvalid, RefusesBf16InAFamilyThatComputesInFp16Alone) {
  Config config = Specialise(Config{}, 64, false, Dtype::kBf16);
  ASSERT_FALSE(Includes(kBf16Families, FamilyOf(config)));
  const InvalidReason reason = WhyInvalid(config);
  EXPECT_TRUE(reason);
  EXPECT_EQ(reason.toggle, "bf16");
  EXPECT_FALSE(reason.why.empty());
  config.dtype = Dtype::kFp16;
  EXPECT_FALSE(WhyInvalid(config));
}

TEST(WhyInvalid, RefusesInBf16WhatIsFp16Alone) {
  for (const Bf16Exclusion& rule : kBf16Exclusions) {
    Config config = {.mma_sync = 1, .mma_v_ldmatrix_trans = 1};
    EXPECT_FALSE(WhyInvalid(Specialise(config, 64, false, Dtype::kBf16)));
    config.*rule.toggle = rule.from;
    EXPECT_FALSE(WhyInvalid(config)) << ConfigName(config);
    const InvalidReason reason = WhyInvalid(Specialise(config, 64, false, Dtype::kBf16));
    EXPECT_EQ(reason.toggle, ToggleId(rule.toggle));
    EXPECT_EQ(reason.missing, "bf16");
    EXPECT_EQ(reason.why, rule.why);
  }
}

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
    const int head_dim = config.wgmma_equal_registers ? 64 : 128;
    const Config bf16 = Specialise(config, head_dim, false, Dtype::kBf16);
    const bool legal = !WhyInvalid(Specialise(config, head_dim, false));
    ASSERT_EQ(!WhyInvalid(bf16), legal) << ConfigName(config);
    if (!legal) continue;
    WgmmaShape expected = ShapeOf(Specialise(config, head_dim, false));
    EXPECT_FALSE(expected.bf16);
    expected.bf16 = true;
    EXPECT_EQ(ShapeOf(bf16), expected) << ConfigName(config);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(WhyInvalid, KnowsFp8AtTheHeadDimWhoseRowsFillTheSwizzle) {
  constexpr Config kFp8 = {.wgmma = 1, .consumer_warpgroups = 1, .wgmma_fp8 = 1};
  EXPECT_FALSE(WhyInvalid(kFp8)) << "of no head dimension yet";
  EXPECT_FALSE(WhyInvalid(Specialise(kFp8, 128, true)));
  EXPECT_EQ(WhyInvalid(Specialise(kFp8, 64, true)).toggle, "wgmma_fp8");
  EXPECT_EQ(WhyInvalid(Specialise(kFp8, 256, false)).toggle, "wgmma_fp8");
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
  EXPECT_EQ(storage.scheme.block_keys, TileN(config));
}

TEST(Registry, AdoptsNothingWithoutAGain) {
  for (const ToggleRow& row : kToggles) {
    EXPECT_GT(row.gate, 1.0) << row.id;
    EXPECT_LT(row.gate, 2.0) << row.id;
  }
}

TEST(Registry, DemandsEvidenceOfEachTechniqueAndNoneOfAControl) {
  for (const ToggleRow& row : kToggles) {
    if (row.control) {
      EXPECT_EQ(row.evidence.change, EvidenceChange::kNone) << row.id;
      EXPECT_TRUE(row.evidence.ptx.empty() && row.evidence.sass.empty()) << row.id;
      EXPECT_EQ(row.predicted.low, 1.0) << row.id;
      EXPECT_EQ(row.predicted.high, 1.0) << row.id;
    } else if (row.launch_side && row.code_side_with == nullptr) {
      EXPECT_FALSE(row.evidence.launched.empty()) << row.id << " is proved by nothing launched";
      EXPECT_TRUE(row.evidence.ptx.empty() && row.evidence.sass.empty()) << row.id;
    } else {
      EXPECT_NE(row.evidence.change, EvidenceChange::kNone) << row.id;
      EXPECT_FALSE(row.evidence.ptx.empty()) << row.id << " is proved by nothing in the PTX";
    }
  }
}

TEST(Registry, HasEvidenceThatIsARegularExpression) {
  for (const ToggleRow& row : kToggles) {
    for (const std::string_view pattern :
         {row.evidence.ptx, row.evidence.sass, row.evidence.launched}) {
      EXPECT_NO_THROW(std::regex{std::string(pattern)}) << row.id << ": " << pattern;
    }
  }
}

TEST(Registry, HasAControlSoThatFalseVerdictsShow) {
  EXPECT_TRUE(std::any_of(std::begin(kToggles), std::end(kToggles),
                          [](const ToggleRow& row) { return row.control; }));
}

// Prior::ratio is time(before) / time(after): where the notes give both times,
// it must be their quotient.
TEST(Registry, GivesPriorRatiosThatAgreeWithThePriorTimes) {
  double before_us = kBaseline.prior.p50_us;
  int compared = 0;
  for (const ToggleRow& row : kToggles) {
    const double after_us = row.prior.p50_us;
    if (after_us > 0 && row.prior.ratio > 0) {
      EXPECT_NEAR(row.prior.ratio, before_us / after_us, 0.005 * row.prior.ratio + 0.005)
          << row.id << ": " << before_us << " us before, " << after_us << " us after";
      ++compared;
    }
    if (after_us > 0) before_us = after_us;
  }
  EXPECT_GE(compared, 3);
}

TEST(Registry, QuotesItsPriorFiguresAsItsPriorTextDoes) {
  for (const ToggleRow& row : kToggles) {
    if (row.prior.p50_us == 0) continue;
    const std::string figure = std::to_string(static_cast<int>(row.prior.p50_us)) + " us";
    EXPECT_THAT(std::string(row.prior.text), ::testing::HasSubstr(figure)) << row.id;
  }
  EXPECT_THAT(std::string(kBaseline.prior.text), ::testing::HasSubstr("2870 us"));
}

// Pages of techniques print both as sentences, and end them.
TEST(Registry, RowsSayWhatOtherFamiliesHaveInTheirPlace) {
  for (const ToggleRow& row : kToggles) {
    bool everywhere = true;
    for (const Family family : {Family::kSmem, Family::kWgmma, Family::kMma, Family::kResident}) {
      everywhere = everywhere && Includes(row.families, family);
    }
    EXPECT_EQ(row.elsewhere.empty(), everywhere || row.control) << row.id;
    EXPECT_FALSE(row.elsewhere.ends_with('.')) << row.id;
    EXPECT_FALSE(row.lesson.ends_with('.')) << row.id;
  }
}

// --- WhyInvalid ----------------------------------------------------------------

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
    for (const Exclusion& rule : kExclusions) {
      const int other = config.*rule.other;
      if (config.*rule.toggle >= rule.from && rule.other_from <= other && other <= rule.other_to) {
        expected = false;
      }
    }
    if (expected && FamilyOf(config) == Family::kSmem &&
        MakeSmemLayout(config).bytes > 227 * 1024) {
      expected = false;
    }
    EXPECT_EQ(!WhyInvalid(config), expected) << ConfigName(config);
    legal += expected ? 1 : 0;
  }
  EXPECT_GT(legal, 10);
}

TEST(WhyInvalid, GivesTheReasonOfEachExclusion) {
  int rules = 0;
  for (const Exclusion& rule : kExclusions) {
    ++rules;
    EXPECT_GT(rule.why.size(), 20u);
    for (const ToggleField field : {rule.toggle, rule.other}) EXPECT_NE(ToggleId(field), "");
    Config config = LastStep();
    if (rule.toggle == &Config::xor_swizzle) config.wmma_qk = config.wmma_pv = 0;
    if (rule.toggle == &Config::fuse_projection) config = {.mma_sync = 1, .project_mma = 1};
    if (rule.toggle == &Config::mma_bulk_copy) config = {.mma_sync = 1, .mma_cp_async_stages = 2};
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
      EXPECT_EQ(static_cast<bool>(reason), SmemBytes(compiled) > 227 * 1024)
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

// --- Geometry --------------------------------------------------------------------

TEST(Geometry, OfTheBaselineIsOneRowPerCta) {
  constexpr Config kOff;
  EXPECT_EQ(TileM(kOff), 1);
  EXPECT_EQ(TileN(kOff), 64);
  EXPECT_EQ(Threads(kOff), 64);
  EXPECT_EQ(Stages(kOff), 1);
}

TEST(Geometry, FollowsTheTogglesOneByOne) {
  constexpr Config kTiled = {.kv_tiling = 1};
  EXPECT_EQ(TileM(kTiled), 16);
  EXPECT_EQ(TileN(kTiled), 32);
  EXPECT_EQ(Threads(kTiled), 64);
  constexpr Config kTall = {.kv_tiling = 1, .tile_m32_warps4 = 1};
  EXPECT_EQ(TileM(kTall), 32);
  EXPECT_EQ(TileN(kTall), 32);
  EXPECT_EQ(Warps(kTall), 4);
  EXPECT_EQ(Threads(kTall), 128);
  EXPECT_EQ(Stages(LastStep()), 2);
}

TEST(Geometry, OfTheWgmmaFamilyFollowsItsOwnToggles) {
  constexpr Config kOne = {.wgmma = 1};
  EXPECT_EQ(TileM(kOne), 64);
  EXPECT_EQ(TileN(kOne), 128);
  EXPECT_EQ(Threads(kOne), 256);
  EXPECT_EQ(Stages(kOne), 1);
  constexpr Config kThree = {.wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1};
  EXPECT_EQ(TileM(kThree), 192);
  EXPECT_EQ(Threads(kThree), 512);
  EXPECT_EQ(Stages(kThree), 4);
  EXPECT_LE(SmemBytes(kThree), 227 * 1024);
  constexpr Config kWide = Specialise(kThree, 128, false);
  EXPECT_EQ(TileM(kWide), 128);
  EXPECT_EQ(Stages(kWide), 2);
  EXPECT_LE(SmemBytes(kWide), 227 * 1024);
  constexpr Config kWidest = Specialise(kThree, 256, true);
  EXPECT_EQ(TileN(kWidest), 80);
  EXPECT_LE(SmemBytes(kWidest), 227 * 1024);
}

TEST(Geometry, OfTheMmaFamilyFollowsItsOwnToggles) {
  constexpr Config kRoot = {.mma_sync = 1};
  EXPECT_EQ(FamilyOf(kRoot), Family::kMma);
  EXPECT_EQ(TileM(kRoot), 64);
  EXPECT_EQ(TileN(kRoot), 64);
  EXPECT_EQ(Threads(kRoot), 128);
  EXPECT_EQ(Stages(kRoot), 1);
  constexpr Config kWide = {.mma_sync = 1, .mma_cp_async_stages = 3, .mma_tile = 1};
  EXPECT_EQ(TileM(kWide), 128);
  EXPECT_EQ(Threads(kWide), 128);
  EXPECT_EQ(Stages(kWide), 3);
  constexpr Config kGroups = {.mma_sync = 1, .mma_tile = 2, .mma_key_groups = 4};
  EXPECT_EQ(TileM(kGroups), 32);
  EXPECT_EQ(Threads(kGroups), 256);
  constexpr Config kProducers = {.mma_sync = 1, .mma_cp_async_stages = 2, .mma_producer_warps = 2};
  EXPECT_EQ(Threads(kProducers), 192);
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

TEST(WhyInvalid, KeepsTheFamiliesApart) {
  const InvalidReason reason = WhyInvalid(Config{.kv_tiling = 1, .wgmma = 1});
  EXPECT_EQ(reason.kind, InvalidReason::Kind::kExcluded);
  EXPECT_EQ(reason.toggle, "kv_tiling");
  EXPECT_EQ(reason.missing, "wgmma");
  EXPECT_FALSE(WhyInvalid(Config{.wgmma = 1, .null_toggle = 1}));
}

TEST(Geometry, IsTheSameWithAndWithoutTheNullToggle) {
  for (const Config& config : LegalConfigs()) {
    Config planted = config;
    planted.null_toggle = 1 - config.null_toggle;
    EXPECT_EQ(TileM(config), TileM(planted));
    EXPECT_EQ(TileN(config), TileN(planted));
    EXPECT_EQ(Threads(config), Threads(planted));
    EXPECT_EQ(SmemBytes(config), SmemBytes(planted));
  }
}

TEST(Geometry, LeavesEachThreadOfTheSmemFamilyTheRegistersOfItsOutputAtHeadDim128) {
  constexpr int kRegistersPerSm = 65536;
  for (const Config& narrow : LegalConfigs()) {
    if (FamilyOf(narrow) != Family::kSmem) continue;
    const Config config = Specialise(narrow, 128, false);
    ASSERT_GE(MinCtasPerSm(config), 1) << InstanceName(config);
    const int registers = kRegistersPerSm / (MinCtasPerSm(config) * Threads(config));
    // A warp's 16 whole rows of O and its scores, and 64 for all else.
    const int kept = config.softmax_in_registers == 3
                         ? (16 * 128 + TileM(config) * TileN(config) / Warps(config)) / kWarpSize
                         : 0;
    EXPECT_GE(registers, kept + 64) << InstanceName(config);
  }
}

TEST(Geometry, LeavesEachThreadItsRegistersOnAnSm) {
  constexpr int kRegistersPerSm = 65536;
  for (const Config& config : LegalConfigs()) {
    EXPECT_LE(Threads(config), 1024) << ConfigName(config);
    EXPECT_EQ(Threads(config) % kWarpSize, 0) << ConfigName(config);
    if (FamilyOf(config) == Family::kMma) continue;  // its bound follows its fragments
    ASSERT_GE(MinCtasPerSm(config), 1) << ConfigName(config);
    const int registers = kRegistersPerSm / (MinCtasPerSm(config) * Threads(config));
    EXPECT_GE(registers, RegisterBudget(config)) << ConfigName(config);
    if (FamilyOf(config) == Family::kSmem && config.producer_warps == 0 && config.tile_m != 48 &&
        RegisterBudget(config) == 128) {
      EXPECT_EQ(registers, 128) << ConfigName(config);
    }
  }
}

// --- Shared memory -----------------------------------------------------------------

struct Region {
  const char* name;
  int begin;
  int end;
};

// What the rules allow of the smem family, at each head dimension that they allow it for.
std::vector<Config> LegalSmemConfigs() {
  std::vector<Config> configs;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kSmem) continue;
    for (const int head_dim : kHeadDims) {
      const Config compiled = Specialise(config, head_dim, false);
      if (!WhyInvalid(compiled)) configs.push_back(compiled);
    }
  }
  return configs;
}

// The regions that live at the same time, with sizes worked out here anew.
std::vector<Region> Regions(const Config& c) {
  const SmemLayout s = MakeSmemLayout(c);
  const auto at = [](const char* name, int begin, int bytes) {
    return Region{name, begin, begin + bytes};
  };
  const int rows = TileM(c);
  const auto tile_bytes = [&](int tile_rows) {
    return c.smem_layout == 2 ? c.head_dim / 16 * (tile_rows * 32 + 32) : tile_rows * s.ld_tile * 2;
  };
  std::vector<Region> regions = {at("q", s.q, tile_bytes(rows)), at("row_max", s.row_max, rows * 4),
                                 at("row_sum", s.row_sum, rows * 4)};
  if (c.softmax_in_registers < 2) {
    regions.push_back(at("scores", s.scores, rows * s.ld_scores * 4));
    regions.push_back(at("rescale", s.rescale, rows * s.ld_rescale * 4));
  }
  if (c.kv_tiling) {
    regions.push_back(at("k", s.k, Stages(c) * tile_bytes(TileN(c))));
    regions.push_back(at("v", s.v, Stages(c) * tile_bytes(TileN(c))));
  }
  if (c.wmma_pv && !c.sp_reuse && c.softmax_in_registers < 3) {
    regions.push_back(at("probs", s.probs, rows * s.ld_probs * 2));
  }
  if (c.softmax_in_registers == 1) {
    regions.push_back(at("partial_max", s.partial_max, TileN(c) / 16 * rows * 4));
  } else if (c.softmax_in_registers > 1) {
    const int warps_per_row_block = Warps(c) / (rows / 16);
    regions.push_back(at("partial_max", s.partial_max, warps_per_row_block * rows * 4));
    regions.push_back(at("partial_sum", s.partial_sum, warps_per_row_block * rows * 4));
  }
  if (c.producer_warps > 0) regions.push_back(at("ring", s.ring, 2 * Stages(c) * 8));
  if (c.persistent == 2) regions.push_back(at("queue", s.queue, 4));
  return regions;
}

TEST(SmemLayout, HasNoTwoRegionsThatOverlapAndNoneThatSticksOut) {
  for (const Config& config : LegalSmemConfigs()) {
    std::vector<Region> regions = Regions(config);
    std::sort(regions.begin(), regions.end(),
              [](const Region& a, const Region& b) { return a.begin < b.begin; });
    int end = 0;
    const char* previous = "the start";
    for (const Region& region : regions) {
      EXPECT_GE(region.begin, end)
          << ConfigName(config) << ": " << region.name << " begins inside " << previous;
      end = region.end;
      previous = region.name;
    }
    EXPECT_LE(end, SmemBytes(config)) << ConfigName(config);
  }
}

// The epilogue stages O where K and V were, while it still reads the row sums.
TEST(SmemLayout, StagesTheOutputOverKAndVAlone) {
  int staged = 0;
  for (const Config& config : LegalSmemConfigs()) {
    if (!config.wmma_pv) continue;
    ++staged;
    const SmemLayout s = MakeSmemLayout(config);
    const Region out = {"out", s.out, s.out + TileM(config) * s.ld_out * 4};
    EXPECT_LE(out.end, s.bytes) << ConfigName(config);
    EXPECT_TRUE(OutputFitsBelowScores(s, TileM(config))) << ConfigName(config);
    SmemLayout tight = s;
    tight.scores = out.end;
    EXPECT_TRUE(OutputFitsBelowScores(tight, TileM(config)));
    tight.scores -= 1;
    EXPECT_FALSE(OutputFitsBelowScores(tight, TileM(config))) << "over the scores' first byte";
    for (const Region& region : Regions(config)) {
      const std::string name = region.name;
      if (name == "k" || name == "v") continue;
      EXPECT_TRUE(out.end <= region.begin || region.end <= out.begin)
          << ConfigName(config) << ": the output lies over " << name;
    }
  }
  EXPECT_GT(staged, 0);
}

// A row of P must lie inside the row of S that the same warp has read.
TEST(SmemLayout, PutsPOverSRowByRowWhereItReusesS) {
  int reused = 0;
  for (const Config& config : LegalSmemConfigs()) {
    const SmemLayout s = MakeSmemLayout(config);
    if (!config.sp_reuse) continue;
    ++reused;
    EXPECT_EQ(s.probs, s.scores);
    EXPECT_EQ(s.ld_probs * 2, s.ld_scores * 4);
    EXPECT_LE(TileN(config) * 2, s.ld_scores * 4);
    Config apart = config;
    apart.sp_reuse = 0;
    EXPECT_LT(SmemBytes(config), SmemBytes(apart));
  }
  EXPECT_GT(reused, 0);
}

// wmma::load_matrix_sync wants 32-byte fragment rows and leading dimensions of
// whole 16 bytes; 16-byte copies want aligned rows.
TEST(SmemLayout, AlignsRegionsAndRowsForFragmentsAndVectorCopies) {
  constexpr int kFragmentRows = 16;
  for (const Config& config : LegalSmemConfigs()) {
    const SmemLayout s = MakeSmemLayout(config);
    for (const int offset :
         {s.q, s.k, s.v, s.scores, s.probs, s.rescale, s.row_max, s.row_sum, s.out, s.ring}) {
      EXPECT_EQ(offset % 32, 0) << ConfigName(config);
    }
    EXPECT_EQ(s.bytes % 32, 0) << ConfigName(config);
    EXPECT_EQ(s.ld_tile * 2 % 16, 0);
    EXPECT_EQ(s.ld_tile * 2 * kFragmentRows % 32, 0);
    EXPECT_EQ(s.ld_scores * 4 % 16, 0);
    EXPECT_EQ(s.ld_scores * 4 * kFragmentRows % 32, 0);
    EXPECT_EQ(s.ld_probs * 2 % 16, 0);
    EXPECT_EQ(s.ld_out * 4 % 16, 0);
    if (config.wmma_pv) {
      EXPECT_EQ(s.ld_rescale, kRescaleColumns);
      EXPECT_EQ(s.ld_rescale * 4 % 16, 0);
    }
  }
}

TEST(SmemLayout, HasRowsThatHoldWhatTheyMust) {
  for (const Config& config : LegalSmemConfigs()) {
    const SmemLayout s = MakeSmemLayout(config);
    EXPECT_GE(s.ld_tile, config.smem_layout == 2 ? 16 : config.head_dim);
    EXPECT_GE(s.ld_out, config.head_dim);
    EXPECT_GE(s.ld_scores, TileN(config));
    EXPECT_GE(s.ld_probs, TileN(config));
  }
}

// Eight neighbouring rows start in eight different 16-byte bank groups.
TEST(SmemLayout, PadsRowsAgainstBankConflictsOf16ByteAccesses) {
  for (const int head_dim : kHeadDims) {
    const SmemLayout s = MakeSmemLayout(Specialise(LastStep(), head_dim, false));
    for (const int row_bytes : {s.ld_tile * 2, s.ld_scores * 4, s.ld_out * 4}) {
      std::set<int> groups;
      for (int row = 0; row < 8; ++row) groups.insert(row * row_bytes % 128 / 16);
      EXPECT_EQ(groups.size(), 8u) << row_bytes;
    }
  }
}

TEST(SmemLayout, OfTheLadderFitsInWhatEachCtaMayHaveWithoutOptingIn) {
  for (Config config : LegalConfigs()) {
    for (const ToggleRow& row : kToggles) {
      if (!row.in_ladder) config.*row.field = 0;
      if (config.*row.field > row.levels.values[1]) config.*row.field = row.levels.values[1];
    }
    if (FamilyOf(config) != Family::kSmem) continue;
    ASSERT_FALSE(WhyInvalid(config));
    EXPECT_LE(SmemBytes(config), kSmemWithoutOptIn) << ConfigName(config);
  }
  EXPECT_EQ(Stages(LastStep()), 2) << "the last step is the one with the most stages";
}

TEST(SmemLayout, DoublesKAndVWithTheSecondStage) {
  constexpr Config kOne = {.kv_tiling = 1, .vector_loads = 1};
  constexpr Config kTwo = {.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 2};
  // Two more tiles of 32 rows of 72 fp16.
  EXPECT_EQ(SmemBytes(kTwo) - SmemBytes(kOne), 2 * 32 * 72 * 2);
}

}  // namespace
}  // namespace warpledger::sdpa
