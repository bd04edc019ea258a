// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/mma/plan.h"

#include "gtest/gtest.h"

namespace warpledger::sdpa {
namespace {

constexpr MmaDevice kH200 = {.sms = 132, .smem_per_sm = 228 * 1024, .l2_bytes = 60 << 20};

ForwardParams ParamsOf(int batch, int heads_q, int heads_kv, int seq_q, int seq_kv) {
  ForwardParams p;
  p.batch = batch;
  p.heads_q = heads_q;
  p.heads_kv = heads_kv;
  p.seq_q = seq_q;
  p.seq_kv = seq_kv;
  return p;
}

constexpr MmaShape kDecode = {
    .head_dim = 128, .row_warps = 1, .tile_n = 32, .key_groups = 4, .stages = 3, .split_kv = true};

TEST(PlanMma, GivesEachTileACta) {
  MmaParams p;
  EXPECT_EQ(PlanMma(ParamsOf(2, 8, 8, 100, 256), {.row_warps = 4}, kH200, &p), 2u * 8 * 2);
  EXPECT_EQ(p.tiles, 32);
  EXPECT_EQ(p.query_tiles, 2);
  EXPECT_EQ(p.splits, 1);
  EXPECT_EQ(p.group_size, 1);
}

TEST(PlanMma, PacksTheHeadsOfAKvHeadIntoRows) {
  MmaShape shape = {.row_warps = 1, .pack_heads = true};
  MmaParams p;
  EXPECT_EQ(PlanMma(ParamsOf(1, 32, 8, 1, 8192), shape, kH200, &p), 8u);
  EXPECT_EQ(p.rows, 4);
  EXPECT_EQ(p.heads, 8);
  shape.pack_heads = false;
  EXPECT_EQ(PlanMma(ParamsOf(1, 32, 8, 1, 8192), shape, kH200, &p), 32u);
  EXPECT_EQ(p.rows, 1);
}

TEST(PlanMma, SplitsTheKeysOfASmallGridUntilItFillsTheGpuOnce) {
  MmaShape shape = kDecode;
  shape.pack_heads = true;
  MmaParams p;
  EXPECT_EQ(PlanMma(ParamsOf(1, 32, 8, 1, 8192), shape, kH200, &p), 8u * 16);
  EXPECT_EQ(p.splits, 16);
  // Two batches leave room for half as many.
  EXPECT_EQ(PlanMma(ParamsOf(2, 32, 8, 1, 8192), shape, kH200, &p), 16u * 8);
}

TEST(PlanMma, NeverSplitsWhatFillsTheGpuNorMoreThanThereAreTiles) {
  MmaParams p;
  EXPECT_EQ(PlanMma(ParamsOf(64, 32, 8, 1, 8192), kDecode, kH200, &p), 64u * 32);
  EXPECT_EQ(p.splits, 1);
  PlanMma(ParamsOf(1, 1, 1, 1, 1), kDecode, kH200, &p);
  EXPECT_EQ(p.splits, 1);
  PlanMma(ParamsOf(1, 1, 1, 1, 32 * 4 * 5), kDecode, kH200, &p);
  EXPECT_EQ(p.splits, 5) << "five K/V tiles for each of the four groups";
}

TEST(PlanMma, GivesEachCtaATileOfKeys) {
  MmaParams p;
  PlanMma(ParamsOf(1, 11, 11, 1, 32 * 54), kDecode, kH200, &p);
  EXPECT_EQ(p.splits, 11) << "of twelve with five of 54 tiles each the last would have none";
  for (int tiles = 4; tiles < 300; ++tiles) {
    PlanMma(ParamsOf(1, 5, 5, 1, 32 * tiles), kDecode, kH200, &p);
    const int share = (tiles + p.splits - 1) / p.splits;
    EXPECT_LT((p.splits - 1) * share, tiles);
  }
}

TEST(MmaJoinTrips, AreOfPiecesAndOfPartsThatThreadsShare) {
  // 128 threads, 32 pieces a row.
  EXPECT_EQ(MmaJoinTrips(kDecode, 4, 16), 1);
  EXPECT_EQ(MmaJoinTrips(kDecode, 4, 17), 2);
  EXPECT_EQ(MmaJoinTrips(kDecode, 16, 2), 4);
  EXPECT_EQ(MmaJoinTrips(kDecode, 5, 16), 2);
  EXPECT_EQ(MmaJoinTrips(kDecode, 1, 64), 1) << "four threads a piece, 16 parts each";
  EXPECT_EQ(MmaJoinTrips(kDecode, 2, 64), 2);
  EXPECT_EQ(MmaJoinTrips(kDecode, 3, 64), 4) << "96 threads have a piece, 32 none";
}

TEST(PlanMma, KeepsPartialOutputsWithinTheWorkspaceAtAnySize) {
  for (int heads = 1; heads <= 400; heads += 7) {
    for (const int seq_kv : {1, 33, 1000, 100000}) {
      MmaParams p;
      PlanMma(ParamsOf(1, heads, heads, 1, seq_kv), kDecode, kH200, &p);
      EXPECT_GE(p.splits, 1);
      EXPECT_LE(p.splits, kMaxSplits);
      EXPECT_TRUE(p.splits == 1 || p.tiles * p.splits <= kMaxPartials) << heads << " " << seq_kv;
    }
  }
}

TEST(PlanMma, FillsTheGpuOnceWithPersistentCtas) {
  const MmaShape shape = {.rows_per_warp = 32, .stages = 2, .persistent = MmaPersistent::kDynamic};
  MmaParams p;
  EXPECT_EQ(PlanMma(ParamsOf(8, 32, 32, 2048, 2048), shape, kH200, &p),
            132u * CtasPerSm(shape, kH200));
  EXPECT_EQ(PlanMma(ParamsOf(1, 1, 1, 1, 1), shape, kH200, &p), 1u);
}

TEST(CtasPerSm, IsWhatRegistersAndSharedMemoryLeave) {
  const MmaShape wide = {.head_dim = 128, .rows_per_warp = 32, .stages = 2};
  EXPECT_EQ(CtasPerSm(wide, kH200), 2);
  EXPECT_EQ(CtasPerSm(kDecode, kH200), 1) << "196 KB of shared memory";
}

}  // namespace
}  // namespace warpledger::sdpa
