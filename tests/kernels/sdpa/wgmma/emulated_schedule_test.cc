// SPDX-License-Identifier: Apache-2.0
// Which tiles of a problem the CTAs of the wgmma family take, run on the CPU: each exactly once,
// whatever the order and the schedule are, and consumers those that their producer took.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/wgmma/plan.h"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {
namespace {

enum class Schedule { kStatic, kDynamic, kFetchAhead, kTilePerCta };

constexpr WgmmaShape Shape(bool causal, WgmmaTileOrder order, int cluster, Schedule schedule) {
  WgmmaShape s;
  s.causal = causal;
  s.tile_n = 64;
  s.tile_order = order;
  s.cluster = cluster;
  s.dynamic_schedule = schedule == Schedule::kDynamic || schedule == Schedule::kFetchAhead;
  s.fetch_ahead = schedule == Schedule::kFetchAhead;
  s.tile_per_cta = schedule == Schedule::kTilePerCta;
  return s;
}

struct Block {
  int head;
  int first_row;
  int split_begin;
  int kv_tiles;
};

// What a launch hands out.
struct Handed {
  std::vector<std::vector<int>> to_producers;                // by CTA, in order
  std::map<std::pair<int, int>, std::vector<int>> to_warps;  // by CTA and consumer warp
  std::vector<Block> blocks;                                 // of all producers
  int counter = 0;                                           // the dynamic schedule's, afterwards
};

// All CTAs run side by side, so that they compete for the counter.
template <WgmmaShape kShape>
Handed Launch(WgmmaParamsOf<kShape> params, int ctas, bool reversed = false) {
  constexpr int kConsumers = kShape.consumers * kWarpgroup;
  Handed out;
  out.to_producers.resize(static_cast<size_t>(ctas));
  params.next_tile = &out.counter;
  emulation::RunCtas({.ctas = static_cast<unsigned>(ctas),
                      .cluster = static_cast<unsigned>(ctas),
                      .threads = kConsumers + 32,
                      .smem_bytes = 1024,
                      .reversed = reversed},
                     [&] {
                       const WgmmaBarriers<kShape> barriers = {emulation::kWindow};
                       const int cta = static_cast<int>(blockIdx.x);
                       const int thread = static_cast<int>(threadIdx.x);
                       if (thread == 0) barriers.Init();
                       __syncthreads();
                       TileQueue<kShape> queue(params, barriers);
                       if (thread < kConsumers) {
                         for (int tile = queue.template Next<false>(); tile >= 0;
                              tile = queue.template Next<false>()) {
                           if (thread % 32 == 31) out.to_warps[{cta, thread / 32}].push_back(tile);
                         }
                       } else if (thread == kConsumers) {
                         for (int tile = queue.template Next<true>(); tile >= 0;
                              tile = queue.template Next<true>()) {
                           queue.FetchAhead();
                           out.to_producers[static_cast<size_t>(cta)].push_back(tile);
                           const WgmmaWork<kShape> work = DecodeWork<kShape>(params, tile);
                           int begin = 0;
                           if constexpr (kShape.split_kv) begin = work.split_begin;
                           out.blocks.push_back({work.head, work.first_row, begin, work.kv_tiles});
                         }
                       }
                     });
  return out;
}

// Of `seq_q` rows, whose last blocks and groups of heads are no whole ones.
template <WgmmaShape kShape>
WgmmaParamsOf<kShape> Params(int heads, int heads_in_flight, int seq_q, int seq_kv) {
  WgmmaParamsOf<kShape> p = {};
  p.heads = heads;
  p.heads_in_flight = heads_in_flight;
  p.seq_q = seq_q;
  p.seq_kv = seq_kv;
  p.query_tiles = (seq_q + TileM(kShape) - 1) / TileM(kShape);
  return p;
}

template <WgmmaShape kShape>
int Tiles(const WgmmaParamsOf<kShape>& p) {
  return BlocksPerHead<kShape>(p) * p.heads;
}

template <WgmmaShape kShape>
void ExpectEachBlockOnce(const WgmmaParamsOf<kShape>& p, int ctas, bool reversed) {
  const Handed handed = Launch<kShape>(p, ctas, reversed);
  EXPECT_EQ(handed.counter, 0) << "the next launch would begin in the middle";
  for (int cta = 0; cta < ctas; ++cta) {
    for (int warp = 0; warp < kShape.consumers * 4; ++warp) {
      const auto seen = handed.to_warps.find({cta, warp});
      const std::vector<int> tiles =
          seen == handed.to_warps.end() ? std::vector<int>() : seen->second;
      EXPECT_EQ(tiles, handed.to_producers[static_cast<size_t>(cta)]) << "CTA " << cta;
    }
  }
  std::map<std::pair<int, int>, int> times;
  for (const Block& block : handed.blocks) {
    ++times[{block.head, block.first_row}];
    // Of all rows of the cluster: its CTAs walk over the same keys.
    constexpr int kClusterRows = kShape.cluster * TileM(kShape);
    const int last_row = std::min((block.first_row / kClusterRows + 1) * kClusterRows, p.seq_q) - 1;
    const int keys =
        kShape.causal ? std::clamp(last_row + p.seq_kv - p.seq_q + 1, 0, p.seq_kv) : p.seq_kv;
    EXPECT_EQ(block.kv_tiles, (keys + kShape.tile_n - 1) / kShape.tile_n);
  }
  const int blocks = BlocksPerHead<kShape>(p) * kShape.cluster;  // the last may hold no row
  EXPECT_EQ(times.size(), static_cast<size_t>(p.heads * blocks));
  for (const auto& [block, count] : times) {
    EXPECT_EQ(count, 1) << "head " << block.first << ", row " << block.second;
    EXPECT_TRUE(block.first >= 0 && block.first < p.heads);
    EXPECT_TRUE(block.second >= 0 && block.second < blocks * TileM(kShape) &&
                block.second % TileM(kShape) == 0);
  }
}

template <WgmmaShape kShape>
void ExpectEachBlockOnceOfManyProblems() {
  for (const auto& [heads, in_flight] : {std::pair(1, 1), std::pair(5, 2), std::pair(7, 7)}) {
    for (const auto& [seq_q, seq_kv] :
         {std::pair(64, 64), std::pair(330, 330), std::pair(200, 500), std::pair(300, 100)}) {
      const auto p = Params<kShape>(heads, in_flight, seq_q, seq_kv);
      const int clusters =
          kShape.tile_per_cta ? Tiles<kShape>(p) : std::min(Tiles<kShape>(p), 4 / kShape.cluster);
      for (const bool reversed : {false, true}) {
        SCOPED_TRACE(testing::Message() << heads << " heads, " << seq_q << " x " << seq_kv);
        ExpectEachBlockOnce<kShape>(p, clusters * kShape.cluster, reversed);
      }
    }
  }
}

template <bool kCausal, WgmmaTileOrder kOrder>
void ExpectEachBlockOnceByEverySchedule() {
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 1, Schedule::kStatic)>();
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 2, Schedule::kStatic)>();
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 1, Schedule::kDynamic)>();
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 1, Schedule::kFetchAhead)>();
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 1, Schedule::kTilePerCta)>();
}

TEST(EmulatedSchedule, HandsOutEachBlockOnceLongestFirst) {
  ExpectEachBlockOnceByEverySchedule<false, WgmmaTileOrder::kLongestFirst>();
  ExpectEachBlockOnceByEverySchedule<true, WgmmaTileOrder::kLongestFirst>();
}

TEST(EmulatedSchedule, HandsOutEachBlockOnceShortestFirst) {
  ExpectEachBlockOnceByEverySchedule<false, WgmmaTileOrder::kShortestFirst>();
  ExpectEachBlockOnceByEverySchedule<true, WgmmaTileOrder::kShortestFirst>();
}

TEST(EmulatedSchedule, HandsOutEachBlockOnceWithHeadsAbreast) {
  ExpectEachBlockOnceByEverySchedule<false, WgmmaTileOrder::kHeadsAbreast>();
  ExpectEachBlockOnceByEverySchedule<true, WgmmaTileOrder::kHeadsAbreast>();
}

// The counter is the instance's: what one launch leaves there, the next one begins with.
TEST(EmulatedSchedule, ADynamicLaunchLeavesTheCounterAsItFoundItHoweverManyTilesThereAre) {
  constexpr WgmmaShape kShape =
      Shape(true, WgmmaTileOrder::kLongestFirst, 1, Schedule::kFetchAhead);
  for (int heads = 1; heads <= 9; ++heads) {
    const auto p = Params<kShape>(heads, 2, 64, 64);
    for (int ctas = 1; ctas <= heads; ++ctas) {
      EXPECT_EQ(Launch<kShape>(p, ctas).counter, 0) << heads << " tiles, " << ctas << " CTAs";
    }
  }
}

// Among the heads whose K and V fit into L2 together, the longest tiles go first.
TEST(EmulatedSchedule, FinishesAGroupOfHeadsBeforeTheNextAndTheLongestTilesFirst) {
  constexpr WgmmaShape kShape =
      Shape(true, WgmmaTileOrder::kLongestFirst, 1, Schedule::kTilePerCta);
  const auto p = Params<kShape>(5, 2, 256, 256);
  std::vector<std::tuple<int, int>> order;  // group, keys that are left out
  std::map<int, Block> by_tile;
  const Handed handed = Launch<kShape>(p, Tiles<kShape>(p));
  ASSERT_EQ(handed.blocks.size(), 20u);
  // CTA i has tile i, and there are as many.
  for (size_t cta = 0; cta < handed.to_producers.size(); ++cta) {
    EXPECT_EQ(handed.to_producers[cta], std::vector<int>{static_cast<int>(cta)});
  }
  for (const Block& block : handed.blocks) order.emplace_back(block.head / 2, -block.kv_tiles);
  // Producers of CTAs that run side by side take turns in their order.
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

constexpr WgmmaShape SplitKeys() {
  WgmmaShape s = Shape(true, WgmmaTileOrder::kLongestFirst, 1, Schedule::kTilePerCta);
  s.split_kv = true;
  s.pack_heads = true;
  return s;
}

// CTAs that share a tile's keys have each of its tiles of keys once, also where there are fewer of
// these than CTAs.
TEST(EmulatedSchedule, SplitsTheKeysOfATileWithoutGapOrOverlap) {
  constexpr WgmmaShape kShape = SplitKeys();
  for (const int splits : {1, 3, 7}) {
    for (const int seq_q : {1, 5, 40}) {
      auto p = Params<kShape>(3, 3, seq_q, 300);
      p.group_size = 8;
      p.positions = WgmmaPositions(kShape, p.group_size);
      p.query_tiles = (seq_q + p.positions - 1) / p.positions;
      p.splits = splits;
      const Handed handed = Launch<kShape>(p, Tiles<kShape>(p) * splits);
      std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> parts;
      for (const Block& block : handed.blocks) {
        parts[{block.head, block.first_row}].emplace_back(block.split_begin, block.kv_tiles);
      }
      EXPECT_EQ(parts.size(), static_cast<size_t>(Tiles<kShape>(p)));
      for (auto& [block, ranges] : parts) {
        ASSERT_EQ(ranges.size(), static_cast<size_t>(splits));
        std::sort(ranges.begin(), ranges.end());
        int next = 0;
        for (const auto& [begin, end] : ranges) {
          EXPECT_EQ(begin, next);
          EXPECT_GE(end, begin);
          next = end;
        }
        const int last_row = std::min(block.second + p.positions, seq_q) - 1;
        EXPECT_EQ(next, (last_row + 300 - seq_q + 1 + kShape.tile_n - 1) / kShape.tile_n);
      }
    }
  }
}

}  // namespace
}  // namespace warpledger::sdpa
