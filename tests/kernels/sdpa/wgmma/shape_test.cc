// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/wgmma/shape.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/rules/rules.h"
#include "tests/kernels/sdpa/rules/all_configs.h"

namespace warpledger::sdpa {
namespace {

constexpr int kMaxSmemBytes = 227 * 1024;
constexpr int kRegistersPerSm = 65536;

// Every configuration of the family that the sample holds, for each head dimension that
// it is legal at.
std::vector<Config> WgmmaConfigs() {
  std::vector<Config> configs;
  for (const Config& config : LegalConfigs()) {
    if (FamilyOf(config) != Family::kWgmma) continue;
    for (const int head_dim : kHeadDims) {
      const Config specialised = Specialise(config, head_dim, true);
      if (!WhyInvalid(specialised)) configs.push_back(specialised);
    }
  }
  return configs;
}

TEST(WgmmaShape, FitsIntoSharedMemoryAtEveryHeadDim) {
  const std::vector<Config> configs = WgmmaConfigs();
  EXPECT_GT(configs.size(), 50u);
  for (const Config& config : configs) {
    EXPECT_LE(GeometryOf(config).smem_bytes, kMaxSmemBytes) << InstanceName(config);
  }
}

TEST(WgmmaShape, HasTilesThatWgmmaAndTheSwizzleAllow) {
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape s = WgmmaShapeOf(config);
    const WgmmaSmem m = MakeSmem(s);
    EXPECT_EQ(s.tile_n % 16, 0) << InstanceName(config);  // K of P V; N of Q K^T by 8
    EXPECT_LE(s.tile_n, 256) << InstanceName(config);     // N, and rows of a box
    EXPECT_LE(TileM(s), 256) << InstanceName(config);
    for (const int offset :
         {m.q, m.k, m.v, m.raw, m.p, m.o, m.kv_bytes, m.v_bytes, m.q_bytes, m.o_bytes, m.p_bytes}) {
      EXPECT_EQ(offset % 1024, 0) << InstanceName(config);
    }
    EXPECT_EQ(m.barriers % 8, 0) << InstanceName(config);
  }
}

// What the accumulators and the probabilities leave of a consumer's registers for
// addresses, statistics and the tile's coordinates.
TEST(WgmmaShape, LeavesConsumersRegistersBesideTheirFragments) {
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape s = WgmmaShapeOf(config);
    if (s.consumers == 1) continue;
    const int probs = s.tile_n * ElementBytes(s) / 8;
    // P V in parts: beside scores none of them, or one with the overlap, and behind scores two.
    const int part = s.two_level ? s.head_dim / 2 / OutputParts(s) : 0;
    const bool together = OutputParts(s) == 1 || s.overlap;
    const int beside =
        std::max(s.tile_n / 2 + (together ? part : 0), OutputParts(s) == 1 ? 0 : 2 * part);
    const int fragments = probs + s.head_dim / 2 + beside;
    EXPECT_GE(ConsumerRegisters(s) - fragments, s.fp8 ? 24 : 32) << InstanceName(config);
  }
}

TEST(WgmmaSmem, HasNoTwoTilesThatOverlap) {
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape s = WgmmaShapeOf(config);
    const WgmmaSmem m = MakeSmem(s);
    EXPECT_EQ(m.q_bytes, TileM(s) * s.head_dim * ElementBytes(s)) << InstanceName(config);
    EXPECT_EQ(m.o_bytes, TileM(s) * s.head_dim * 2) << InstanceName(config);
    EXPECT_GE(m.k, m.q + m.q_bytes) << InstanceName(config);
    EXPECT_GE(m.v, m.k + KStages(s) * m.kv_bytes) << InstanceName(config);
    EXPECT_GE(m.v_bytes, m.kv_bytes) << InstanceName(config);
    EXPECT_GE(m.raw, m.v + s.stages * m.v_bytes) << InstanceName(config);
    EXPECT_GE(m.p, m.raw + (s.fp8 ? s.stages * m.kv_bytes : 0)) << InstanceName(config);
    // O is wider than Q then, and passes through Q's place in parts of whole swizzled rows.
    EXPECT_EQ(OutputRounds(s), s.fp8 && StoresThroughQ(s) ? 2 : 1) << InstanceName(config);
    EXPECT_EQ(s.head_dim / OutputRounds(s) % kSwizzleColumns, 0) << InstanceName(config);
    EXPECT_GE(m.p_bytes, s.p_smem ? kRowsPerConsumer * s.tile_n * 2 : 0) << InstanceName(config);
    EXPECT_GE(m.barriers, m.p + s.consumers * m.p_bytes) << InstanceName(config);
    if (s.tma_store && !StoresThroughQ(s)) {
      EXPECT_GE(m.o, m.p + s.consumers * m.p_bytes) << InstanceName(config);
      EXPECT_GE(m.barriers, m.o + m.o_bytes) << InstanceName(config);
    }
  }
}

TEST(WgmmaSmem, GivesOAPlaceOfItsOwnWhereItFits) {
  constexpr Config kStore = {
      .wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1, .tma_store = 1};
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(kStore, 64, false))));
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(kStore, 128, false))));
  EXPECT_TRUE(StoresThroughQ(WgmmaShapeOf(Specialise(kStore, 256, false))));
  constexpr Config kNone = {.wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1};
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(kNone, 256, false))));
  Config fp8 = kStore;
  fp8.wgmma_fp8 = 1;
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(fp8, 64, false))));
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(fp8, 128, false))));
  EXPECT_TRUE(StoresThroughQ(WgmmaShapeOf(Specialise(fp8, 256, false))));
  fp8.kv_ring_stages = 2;
  EXPECT_FALSE(StoresThroughQ(WgmmaShapeOf(Specialise(fp8, 256, false))));
}

TEST(WgmmaShape, HasTilesOfE4m3ForEachHeadDim) {
  constexpr Config kFp8 = {.wgmma = 1,
                           .kv_ring_stages = 1,
                           .consumer_warpgroups = 1,
                           .wgmma_fp8 = 1,
                           .wgmma_fp8_two_level = 1};
  struct Row {
    int head_dim;
    int tile;  // level of wgmma_tile
    int consumers;
    int tile_n;
    int row_bytes;
    int transposed_row_bytes;
    int parts;
  };
  constexpr Row kRows[] = {{64, 0, 3, 96, 64, 128, 1},  {64, 1, 2, 128, 64, 128, 1},
                           {64, 2, 2, 192, 64, 64, 1},  {128, 0, 2, 128, 128, 128, 1},
                           {256, 0, 2, 64, 128, 64, 4}, {256, 2, 2, 128, 128, 128, 4}};
  for (const Row& row : kRows) {
    Config config = kFp8;
    config.wgmma_tile = row.tile;
    const Config specialised = Specialise(config, row.head_dim, false);
    EXPECT_FALSE(WhyInvalid(specialised)) << InstanceName(specialised);
    const WgmmaShape s = WgmmaShapeOf(specialised);
    EXPECT_EQ(s.consumers, row.consumers) << InstanceName(specialised);
    EXPECT_EQ(s.tile_n, row.tile_n) << InstanceName(specialised);
    EXPECT_EQ(RowBytes(s), row.row_bytes) << InstanceName(specialised);
    EXPECT_EQ(TransposedRowBytes(s), row.transposed_row_bytes) << InstanceName(specialised);
    EXPECT_EQ(OutputParts(s), row.parts) << InstanceName(specialised);
    EXPECT_GE(s.stages, 2) << InstanceName(specialised);
    EXPECT_EQ(s.tile_n % 32, 0) << InstanceName(specialised);  // K of a product
  }
}

TEST(WgmmaShape, KeepsAsManyTilesOfKeysAsFit) {
  constexpr Config kKeep = {.wgmma = 1,
                            .kv_ring_stages = 1,
                            .softmax_overlap = 1,
                            .consumer_warpgroups = 1,
                            .dynamic_schedule = 1,
                            .wgmma_tile = 1,
                            .wgmma_keep_kv = 1};
  const WgmmaShape both = WgmmaShapeOf(Specialise(kKeep, 64, false));
  EXPECT_TRUE(both.keep_k && both.keep_v);
  EXPECT_EQ(both.stages, 6);
  EXPECT_EQ(KStages(both), 6);
  Config wide = kKeep;
  wide.wgmma_tile = 0;
  const WgmmaShape k_alone = WgmmaShapeOf(Specialise(wide, 128, false));
  EXPECT_TRUE(k_alone.keep_k && !k_alone.keep_v);
  EXPECT_EQ(k_alone.stages, 2);
  EXPECT_EQ(KStages(k_alone), 4);
  for (const WgmmaShape& shape : {both, k_alone}) {
    EXPECT_LE(MakeSmem(shape).bytes, kMaxCtaSmemBytes);
    const int stage = MakeSmem(shape).kv_bytes * (shape.keep_v ? 2 : 1);
    EXPECT_GT(MakeSmem(shape).bytes + stage, kMaxCtaSmemBytes);
  }
}

TEST(WgmmaShape, TakesThePlaceOfPInSharedMemoryFromKeysAtHeadDim256) {
  constexpr Config kPSmem = {
      .wgmma = 1, .kv_ring_stages = 1, .consumer_warpgroups = 1, .wgmma_p_smem = 1};
  for (const int head_dim : kHeadDims) {
    Config without = kPSmem;
    without.wgmma_p_smem = 0;
    const WgmmaShape s = WgmmaShapeOf(Specialise(kPSmem, head_dim, false));
    const WgmmaShape base = WgmmaShapeOf(Specialise(without, head_dim, false));
    EXPECT_EQ(s.stages, base.stages) << head_dim;
    EXPECT_EQ(s.tile_n, head_dim == 256 ? 64 : base.tile_n) << head_dim;
  }
}

// A CTA of a cluster fills whole atoms of eight rows, or the swizzle would start anew.
TEST(WgmmaShape, DividesKAndVTilesOverAClusterInWholeAtoms) {
  int clusters = 0;
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape s = WgmmaShapeOf(config);
    EXPECT_EQ(s.tile_n % (8 * s.cluster), 0) << InstanceName(config);
    if (s.cluster == 1) continue;
    ++clusters;
    EXPECT_FALSE(s.keep_k) << InstanceName(config);  // one CTA has all tiles of a head
  }
  EXPECT_GT(clusters, 0);
}

TEST(WgmmaTile, OfLevelOneLeavesNoRowOrKeyIdleWhereTheLengthIsAPowerOfTwo) {
  for (const int head_dim : kHeadDims) {
    const WgmmaTile tile = WgmmaTileOf(1, true, head_dim);
    EXPECT_EQ(512 % (tile.consumers * kRowsPerConsumer), 0) << head_dim;
    EXPECT_EQ(512 % tile.tile_n, 0) << head_dim;
  }
  // The default does at head_dim 64: what the registry's claim says.
  const WgmmaTile wide = WgmmaTileOf(0, true, 64);
  const int tile_m = wide.consumers * kRowsPerConsumer;
  EXPECT_EQ((512 + tile_m - 1) / tile_m * tile_m * 1000 / 512, 1125);
  EXPECT_EQ((512 + wide.tile_n - 1) / wide.tile_n * wide.tile_n * 1000 / 512, 1093);
}

// The kernel is compiled for a cap of 65536 registers over its threads; setmaxnreg moves
// them within what the CTA was given.
TEST(WgmmaShape, GivesAllRegistersThatALaunchHasAndNoMore) {
  int moved = 0;
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape s = WgmmaShapeOf(config);
    if (!MovesRegisters(s)) continue;
    ++moved;
    // A thread gets a multiple of eight at the launch.
    const int at_start = kRegistersPerSm / Threads(s) / 8 * 8 * Threads(s);
    EXPECT_EQ((ProducerRegisters(s) + s.consumers * ConsumerRegisters(s)) * kWarpgroup, at_start)
        << InstanceName(config);
    EXPECT_EQ(ProducerRegisters(s) % 8, 0);
    EXPECT_EQ(ConsumerRegisters(s) % 8, 0);
  }
  EXPECT_GT(moved, 50);
}

// What its parts assert when an instance is compiled, so that a design of one's own is refused with
// a reason and not by the compiler.
TEST(WgmmaShape, OfEveryLegalConfigurationIsOneThatItsPartsCompileFor) {
  int joins = 0;
  int copies = 0;
  int p_smem = 0;
  for (const Config& config : WgmmaConfigs()) {
    const WgmmaShape shape = WgmmaShapeOf(config);
    const std::string name = InstanceName(config);
    if (shape.cluster_join) {
      EXPECT_TRUE(JoinFitsInRing(shape)) << name;
      ++joins;
    }
    if (shape.cp_async) {
      EXPECT_GT(shape.stages, 1) << name;
      ++copies;
    }
    if (shape.p_smem) {
      Config in_registers = config;
      in_registers.wgmma_p_smem = 0;
      EXPECT_EQ(shape.stages, WgmmaShapeOf(in_registers).stages) << name;
      ++p_smem;
    }
  }
  EXPECT_GT(joins, 5);
  EXPECT_GT(copies, 5);
  EXPECT_GT(p_smem, 20);
}

}  // namespace
}  // namespace warpledger::sdpa
