// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/smem/smem_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/rules.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa::smem {
namespace {

constexpr int kSmemWithoutOptIn = 48 * 1024;

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
    EXPECT_LE(end, MakeSmemLayout(config).bytes) << ConfigName(config);
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
    EXPECT_LT(MakeSmemLayout(config).bytes, MakeSmemLayout(apart).bytes);
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
    EXPECT_LE(MakeSmemLayout(config).bytes, kSmemWithoutOptIn) << ConfigName(config);
  }
  EXPECT_EQ(Stages(LastStep()), 2) << "the last step is the one with the most stages";
}

TEST(SmemLayout, DoublesKAndVWithTheSecondStage) {
  constexpr Config kOne = {.kv_tiling = 1, .vector_loads = 1};
  constexpr Config kTwo = {.kv_tiling = 1, .vector_loads = 1, .cp_async_stages = 2};
  // Two more tiles of 32 rows of 72 fp16.
  EXPECT_EQ(MakeSmemLayout(kTwo).bytes - MakeSmemLayout(kOne).bytes, 2 * 32 * 72 * 2);
}

}  // namespace
}  // namespace warpledger::sdpa::smem
