// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/wgmma/plan.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/problem/shapes.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::sdpa {
namespace {

constexpr int kSms = 132;  // of an H200

constexpr WgmmaShape kDecode = {
    .head_dim = 128, .tile_n = 128, .stages = 2, .pack_heads = true, .split_kv = true};

TEST(WgmmaPositions, AreTheTilesRowsUnlessHeadsArePacked) {
  WgmmaShape shape = {.consumers = 2};
  EXPECT_EQ(WgmmaPositions(shape, 4), 128);
  shape.pack_heads = true;
  EXPECT_EQ(WgmmaPositions(shape, 1), 128);
  EXPECT_EQ(WgmmaPositions(shape, 4), 32);
  EXPECT_EQ(WgmmaPositions(shape, 3), 42) << "two rows stay idle";
  EXPECT_EQ(WgmmaPositions(shape, 128), 1);
  EXPECT_EQ(WgmmaPositions(shape, 129), 0) << "a group that no tile holds";
}

TEST(WgmmaHeadsInFlight, HaveTheirKeysAndValuesInHalfOfL2) {
  WgmmaShape shape = {.head_dim = 128};
  EXPECT_EQ(WgmmaHeadsInFlight(shape, 8192, 1, 64), 8) << "4 MiB each";
  EXPECT_EQ(WgmmaHeadsInFlight(shape, 8192, 4, 64), 32) << "four heads to each";
  EXPECT_EQ(WgmmaHeadsInFlight(shape, 512, 1, 64), 64) << "all that there are";
  shape.fp8 = true;
  EXPECT_EQ(WgmmaHeadsInFlight(shape, 8192, 1, 64), 16);
  shape.pack_heads = true;
  EXPECT_EQ(WgmmaHeadsInFlight(shape, 8192, 4, 64), 16) << "tiles of whole groups";
}

TEST(WgmmaHeadsInFlight, AreAGroupAtLeastWhereOneFillsMore) {
  constexpr WgmmaShape kShape = {.head_dim = 256};
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 65536, 1, 64), 1);
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 65536, 4, 64), 4);
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 65536, 4, 2), 2);
}

TEST(WgmmaHeadsInFlight, AreEqualSharesOfAllHeads) {
  constexpr WgmmaShape kShape = {.head_dim = 256};
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 2816, 1, 12), 6) << "11 have room, and one would be last";
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 1335, 1, 32), 16);
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 2816, 4, 48), 24);
  EXPECT_EQ(WgmmaHeadsInFlight(kShape, 8192, 1, 5), 3) << "4 have room";
}

// How long 132 SMs take for all causal tiles of so many heads, over their equal share of the work.
// A tile costs its tiles of keys, and 1.5 of these for its begin and end.
double OverEqualShares(const WgmmaShape& shape, int heads, int keys, int heads_at_once) {
  constexpr double kEnds = 1.5;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends(
      std::greater<>(), std::vector<double>(kSms, 0.0));
  const int tiles = (keys + TileM(shape) - 1) / TileM(shape);
  double work = 0;
  double last = 0;
  for (int first = 0; first < heads; first += heads_at_once) {
    for (int tile = tiles; tile > 0; --tile) {
      const int seen = std::min(keys, tile * TileM(shape));
      const double cost = kEnds + (seen + shape.tile_n - 1) / shape.tile_n;
      for (int i = 0; i < std::min(heads_at_once, heads - first); ++i) {
        const double end = ends.top() + cost;
        ends.pop();
        ends.push(end);
        work += cost;
        last = std::max(last, end);
      }
    }
  }
  return last * kSms / work;
}

TEST(WgmmaHeadsInFlight, LeaveFewSmsIdleAtTheEnd) {
  double equal = 0;
  double full = 0;
  double worst = 0;
  double worst_full = 0;
  int problems = 0;
  for (const WgmmaShape& shape : {WgmmaShape{.head_dim = 64, .consumers = 3, .tile_n = 112},
                                  WgmmaShape{.head_dim = 128, .consumers = 2, .tile_n = 128},
                                  WgmmaShape{.head_dim = 256, .consumers = 2, .tile_n = 80}}) {
    for (int keys = 300; keys < 9000; keys += 435) {
      for (const int heads : {4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96}) {
        const int64_t room = std::max<int64_t>((int64_t{32} << 20) / (keys * BytesOfKey(shape)), 1);
        if (room >= heads) continue;
        const double now =
            OverEqualShares(shape, heads, keys, WgmmaHeadsInFlight(shape, keys, 1, heads));
        const double before = OverEqualShares(shape, heads, keys, static_cast<int>(room));
        equal += now;
        full += before;
        worst = std::max(worst, now);
        worst_full = std::max(worst_full, before);
        ++problems;
      }
    }
  }
  EXPECT_GT(problems, 200);
  EXPECT_LT(equal / problems, 1.03);
  EXPECT_LT(worst, 1.2);
  // With as many heads at once as have room.
  EXPECT_GT(full / problems, 1.06);
  EXPECT_GT(worst_full, 1.7);
  RecordProperty("equal_shares", std::to_string(equal / problems));
  RecordProperty("as_many_as_have_room", std::to_string(full / problems));
  RecordProperty("problems", problems);
}

// So that records of the suite's shapes are of the same launches.
TEST(WgmmaHeadsInFlight, AreAsManyAsHaveRoomInTheSuitesShapes) {
  for (const NamedShape& named : kShapes) {
    const Problem& p = named.problem;
    if (!p.causal || p.seq_q < 512 || p.embed_dim != 0) continue;
    WgmmaShape shape;
    shape.head_dim = p.head_dim;
    const int group = p.heads_q / p.heads_kv;
    const int heads = p.batch * p.heads_q;
    const int64_t room = std::max<int64_t>((int64_t{32} << 20) / (p.seq_kv * BytesOfKey(shape)), 1);
    EXPECT_EQ(WgmmaHeadsInFlight(shape, p.seq_kv, group, heads),
              std::min<int64_t>(room * group, heads))
        << named.name;
  }
}

TEST(WgmmaTilesAtOnce, AreAHeadsWhereItsKeysFitAndHeadsFillTheGpu) {
  constexpr WgmmaShape kShape = {.tile_n = 128, .stages = 6, .keep_k = true, .keep_v = true};
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 4, 1024, 512, kSms), 4);
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 6, 1024, 768, kSms), 6);
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 7, 1024, 769, kSms), 1) << "the ring holds 768 keys";
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 4, 132, 512, kSms), 4);
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 4, 115, 512, kSms), 1) << "17 of 132 SMs would wait";
  EXPECT_EQ(WgmmaTilesAtOnce(kShape, 4, 140, 512, kSms), 1) << "a second round for eight heads";
  WgmmaShape k_alone = kShape;
  k_alone.keep_v = false;
  k_alone.stages = 2;
  k_alone.k_stages = 4;
  EXPECT_EQ(WgmmaTilesAtOnce(k_alone, 4, 1024, 512, kSms), 4);
  EXPECT_EQ(WgmmaTilesAtOnce(k_alone, 5, 1024, 513, kSms), 1);
  WgmmaShape without = kShape;
  without.keep_k = without.keep_v = false;
  EXPECT_EQ(WgmmaTilesAtOnce(without, 4, 1024, 512, kSms), 1);
}

TEST(WgmmaSplits, FillTheGpuOnce) {
  EXPECT_EQ(WgmmaSplits(kDecode, 8, 4, 8192, kSms), 16);
  EXPECT_EQ(WgmmaSplits(kDecode, 32, 1, 8192, kSms), 4);
  EXPECT_EQ(WgmmaSplits(kDecode, 128, 4, 8192, kSms), 1);
  EXPECT_EQ(WgmmaSplits(kDecode, 5000, 4, 8192, kSms), 1);
}

TEST(WgmmaSplits, AreNoMoreThanThereAreTilesOfKeys) {
  EXPECT_EQ(WgmmaSplits(kDecode, 1, 1, 1, kSms), 1);
  EXPECT_EQ(WgmmaSplits(kDecode, 1, 1, 128 * 5, kSms), 5);
  EXPECT_EQ(WgmmaSplits(kDecode, 1, 1, 128 * 5 + 1, kSms), 6);
}

TEST(WgmmaSplits, AreNoMoreThanOneCtaIsToJoin) {
  // 16 KiB of each part.
  EXPECT_EQ(WgmmaSplits(kDecode, 1, 32, 8192, kSms), 16);
  EXPECT_EQ(WgmmaSplits(kDecode, 1, 64, 8192, kSms), 8);
}

TEST(WgmmaSplits, AreAsManyAsAKernelJoinsWhereOneDoes) {
  WgmmaShape shape = kDecode;
  shape.join_kernel = true;
  EXPECT_EQ(WgmmaSplits(shape, 1, 32, 8192, kSms), 64);
  EXPECT_EQ(WgmmaSplits(shape, 1, 64, 65536, kSms), 64);
  EXPECT_EQ(WgmmaSplits(shape, 4, 32, 8192, kSms), 33);
}

constexpr int kH100BusBits = 5120;
// On an H100, and at head_dim 128.
int SplitsOverPairs(int tiles, int splits) {
  return WgmmaSplitsOverPairs(128, tiles, splits, kSms, kH100BusBits);
}

TEST(WgmmaSplitsOverPairs, TakeOneSmOfEachPairWhereTheyFillThose) {
  EXPECT_EQ(SplitsOverPairs(8, 16), 8);
  EXPECT_EQ(SplitsOverPairs(4, 33), 16);
  EXPECT_EQ(SplitsOverPairs(16, 8), 4);
}

TEST(WgmmaSplitsOverPairs, LeaveTheNumberWhereSomePairsWouldIdle) {
  EXPECT_EQ(SplitsOverPairs(12, 11), 11) << "60 of 66";
  EXPECT_EQ(SplitsOverPairs(5, 26), 13);
  EXPECT_EQ(SplitsOverPairs(32, 4), 4) << "two a tile were not tried";
  EXPECT_EQ(SplitsOverPairs(100, 1), 1);
}

TEST(WgmmaSplitsOverPairs, LeaveTheNumberWhereProductsTakeLongerThanDram) {
  EXPECT_EQ(WgmmaSplitsOverPairs(128, 8, 16, kSms, kH200BusBits), 16);
  EXPECT_EQ(WgmmaSplitsOverPairs(64, 8, 16, kSms, kH200BusBits), 16);
  EXPECT_EQ(WgmmaSplitsOverPairs(64, 8, 16, kSms, kH100BusBits), 16);
  EXPECT_EQ(WgmmaSplitsOverPairs(256, 8, 16, kSms, kH200BusBits), 8);
}

TEST(WgmmaSplitsOverPairs, AreNeverMore) {
  EXPECT_EQ(SplitsOverPairs(1, 64), 64);
  EXPECT_EQ(SplitsOverPairs(8, 5), 5) << "tiles of keys are few";
  for (const int sms : {1, 2, 78, 132, 148}) {
    for (int tiles = 1; tiles <= 200; ++tiles) {
      for (const int splits : {1, 2, 16, 64}) {
        const int fewer = WgmmaSplitsOverPairs(256, tiles, splits, sms, kH200BusBits);
        EXPECT_LE(fewer, splits);
        EXPECT_GE(fewer, 1);
      }
    }
  }
}

TEST(WgmmaSharesInCluster, WhereNoMoreCtasThanAPortableClusterHasTakeOneSmOfEachPair) {
  const auto shares = [](int tiles, int query_tiles, int splits, int bus_bits = kH100BusBits) {
    return WgmmaSharesInCluster(128, tiles, query_tiles, splits, kSms, bus_bits);
  };
  EXPECT_TRUE(shares(8, 1, 16));
  EXPECT_TRUE(shares(16, 1, 8));
  EXPECT_TRUE(shares(8, 1, 8));
  EXPECT_FALSE(shares(8, 1, 7)) << "tiles of keys are few";
  EXPECT_FALSE(shares(8, 2, 8)) << "two tiles of queries";
  EXPECT_FALSE(shares(4, 1, 33)) << "16 CTAs a tile";
  EXPECT_FALSE(shares(12, 1, 11)) << "60 of 66 pairs";
  EXPECT_FALSE(shares(128, 1, 1));
  EXPECT_FALSE(shares(8, 1, 16, kH200BusBits)) << "an H200";
}

TEST(WgmmaSplits, AreNoMoreThanAClusterHas) {
  WgmmaShape shape = kDecode;
  shape.cluster_join = true;
  EXPECT_EQ(WgmmaSplits(shape, 1, 32, 8192, kSms), 16);
  EXPECT_EQ(WgmmaSplits(shape, 1, 64, 8192, kSms), 16) << "every CTA joins: rows are no limit";
  EXPECT_EQ(WgmmaSplits(shape, 32, 1, 8192, kSms), 4);
}

// The parts of all splits have a place, on the largest of GPUs too.
TEST(WgmmaSplits, NeverLeaveMorePartsThanThereIsRoomFor) {
  int split = 0;
  for (const int sms : {1, 78, 132, 148, 1000}) {
    for (const NamedShape& shape : kShapes) {
      const Problem& p = shape.problem;
      for (const bool packed : {false, true}) {
        WgmmaShape s = kDecode;
        s.head_dim = p.head_dim;
        s.pack_heads = packed;
        const int group = p.heads_q / p.heads_kv;
        const int positions = WgmmaPositions(s, group);
        const int heads = p.batch * (packed ? p.heads_kv : p.heads_q);
        const int tiles = heads * ((p.seq_q + positions - 1) / positions);
        const int rows = std::min(TileM(s), p.seq_q * (packed ? group : 1));
        const int splits = WgmmaSplits(s, tiles, rows, p.seq_kv, sms);
        EXPECT_GE(splits, 1) << shape.name;
        EXPECT_LE(splits, kMaxWgmmaSplits) << shape.name;
        if (splits == 1) continue;
        ++split;
        EXPECT_LE(splits * tiles, std::min(sms, kMaxWgmmaPartials)) << shape.name;
      }
    }
  }
  EXPECT_GT(split, 50);
}

}  // namespace
}  // namespace warpledger::sdpa
