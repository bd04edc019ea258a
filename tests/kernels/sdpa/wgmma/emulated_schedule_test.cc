// SPDX-License-Identifier: Apache-2.0
// Which tiles of a problem the CTAs of the wgmma family take, run on the CPU: each exactly once,
// whatever the order and the schedule are, and consumers those that their producer took.

// Device code, behind what it needs on the CPU.
// clang-format off
#include "tests/emulation/cuda_on_cpu.h"
#include "kernels/sdpa/shared/sequences/sequence_plan.cuh"
// clang-format on

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/wgmma/plan.h"
#include "kernels/sdpa/wgmma/schedule.cuh"

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

// Calls produced(cta, queue, tile) of each tile that a producer takes and consumed(cta, thread,
// queue, tile) of each that it tells a consumer's thread. All CTAs run side by side, so that they
// compete for the counter.
template <WgmmaShape kShape, typename Produced, typename Consumed>
void RunQueues(const WgmmaParamsOf<kShape>& params, int ctas, bool reversed, Produced produced,
               Consumed consumed) {
  constexpr int kConsumers = kShape.consumers * kWarpgroup;
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
                           consumed(cta, thread, queue, tile);
                         }
                       } else if (thread == kConsumers) {
                         for (int tile = queue.template Next<true>(); tile >= 0;
                              tile = queue.template Next<true>()) {
                           queue.FetchAhead();
                           produced(cta, queue, tile);
                         }
                       }
                       if constexpr (kShape.cluster > 1) ptx::ClusterSync();
                     });
}

template <WgmmaShape kShape>
Handed Launch(WgmmaParamsOf<kShape> params, int ctas, bool reversed = false) {
  Handed out;
  out.to_producers.resize(static_cast<size_t>(ctas));
  params.next_tile = &out.counter;
  RunQueues<kShape>(
      params, ctas, reversed,
      [&](int cta, auto&, int tile) {
        out.to_producers[static_cast<size_t>(cta)].push_back(tile);
        const WgmmaWork<kShape> work = DecodeWork<kShape>(params, tile);
        int begin = 0;
        if constexpr (kShape.split_kv) begin = work.split_begin;
        out.blocks.push_back({work.head, work.first_row, begin, work.kv_tiles});
      },
      [&](int cta, int thread, auto&, int tile) {
        if (thread % 32 == 31) out.to_warps[{cta, thread / 32}].push_back(tile);
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
      // All CTAs are one cluster here, and of a pair's queue the first CTA is that of the cluster.
      constexpr int kMost = kShape.dynamic_schedule && kShape.cluster > 1 ? 1 : 4 / kShape.cluster;
      const int clusters =
          kShape.tile_per_cta ? Tiles<kShape>(p) : std::min(Tiles<kShape>(p), kMost);
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
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 2, Schedule::kDynamic)>();
  ExpectEachBlockOnceOfManyProblems<Shape(kCausal, kOrder, 2, Schedule::kFetchAhead)>();
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

constexpr WgmmaShape KeepKeys(bool causal) {
  WgmmaShape s = Shape(causal, WgmmaTileOrder::kLongestFirst, 1, Schedule::kFetchAhead);
  s.stages = 6;
  s.keep_k = s.keep_v = true;
  return s;
}

// A CTA has all tiles of queries of its heads, each tile of keys stands in one slot for all of
// them, and is let go once, in the order in which it came.
template <bool kCausal>
void ExpectKeysOfAHeadKept(int heads, int seq_q, int seq_kv) {
  constexpr WgmmaShape kShape = KeepKeys(kCausal);
  auto p = Params<kShape>(heads, heads, seq_q, seq_kv);
  p.tiles_at_once = WgmmaTilesAtOnce(kShape, p.query_tiles, heads, seq_kv, heads);
  ASSERT_EQ(p.tiles_at_once, p.query_tiles);
  int counter = 0;
  p.next_tile = &counter;
  std::map<std::pair<int, int>, int> times;  // by head and first row
  RunQueues<kShape>(
      p, std::min(heads, 3), false,
      [&](int, auto& queue, int tile) {
        HeadWalk<kShape> walk(p, queue.Work(tile));
        const int all = walk.work().kv_tiles;
        RingCursor<kShape.stages> ring = {4, 1};
        std::map<int, std::pair<int, uint32_t>> places;
        std::vector<int> let_go;
        for (; !walk.IsDone(); walk.Advance()) {
          const WgmmaWork<kShape>& work = walk.work();
          ++times[{work.head, work.first_row}];
          const int last_row = std::min(work.first_row + TileM(kShape), seq_q) - 1;
          const int keys = kCausal ? std::clamp(last_row + seq_kv - seq_q + 1, 0, seq_kv) : seq_kv;
          EXPECT_EQ(work.kv_tiles, (keys + kShape.tile_n - 1) / kShape.tile_n);
          for (int n = work.kv_tiles - 1; n >= 0; --n) {
            const auto [place, is_new] = places.emplace(n, std::pair(ring.slot, ring.phase));
            EXPECT_EQ(place->second, std::pair(ring.slot, ring.phase)) << "tile of keys " << n;
            if (n >= walk.kept()) let_go.push_back(n);
            ring.Advance();
          }
          ring.Rewind(walk.kept());
        }
        std::vector<int> came;
        for (int n = all - 1; n >= 0; --n) came.push_back(n);
        EXPECT_EQ(let_go, came);
      },
      [](int, int, auto&, int) {});
  EXPECT_EQ(counter, 0);
  EXPECT_EQ(times.size(), static_cast<size_t>(heads * p.query_tiles));
  for (const auto& [block, count] : times) EXPECT_EQ(count, 1) << "row " << block.second;
}

TEST(EmulatedSchedule, KeepsTheKeysOfAHeadForAllItsTilesOfQueries) {
  for (const auto& [seq_q, seq_kv] :
       {std::pair(64, 64), std::pair(330, 330), std::pair(200, 380), std::pair(300, 100)}) {
    for (const int heads : {1, 7}) {
      SCOPED_TRACE(testing::Message() << heads << " heads, " << seq_q << " x " << seq_kv);
      ExpectKeysOfAHeadKept<false>(heads, seq_q, seq_kv);
      ExpectKeysOfAHeadKept<true>(heads, seq_q, seq_kv);
    }
  }
}

// Where they don't fit, or heads are too few, a CTA has one tile of queries after another.
TEST(EmulatedSchedule, HandsOutEachBlockOnceWhereKeysAreNotKept) {
  ExpectEachBlockOnceOfManyProblems<KeepKeys(false)>();
  ExpectEachBlockOnceOfManyProblems<KeepKeys(true)>();
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

// --- Packed sequences ---

// Where each begins, and the last ends.
std::vector<int> Cumulated(const std::vector<int>& lengths) {
  std::vector<int> cumulated = {0};
  for (const int length : lengths) cumulated.push_back(cumulated.back() + length);
  return cumulated;
}

struct Plan {
  std::vector<SequenceBlock> blocks;
  int count = -1;
};

Plan PlanOf(SequencePlanParams params) {
  Plan plan;
  plan.blocks.resize(static_cast<size_t>(params.capacity) + 1);  // the last is a guard
  plan.blocks.back().seq_q = -7;
  params.blocks = plan.blocks.data();
  params.block_count = &plan.count;
  auto smem = std::make_unique<SequencePlanSmem>();
  emulation::RunCtas({.ctas = 1, .threads = kPlanThreads, .smem_bytes = 16},
                     [&] { ListSequenceBlocks(params, *smem); });
  EXPECT_EQ(plan.blocks.back().seq_q, -7) << "written behind the list";
  plan.blocks.resize(static_cast<size_t>(plan.count));
  return plan;
}

constexpr WgmmaShape Varlen(bool causal) {
  WgmmaShape s = Shape(causal, WgmmaTileOrder::kLongestFirst, 1, Schedule::kFetchAhead);
  s.varlen = true;
  return s;
}

// Every block of every sequence and head is one producer's, and what its consumers are told of it
// is what the lengths say.
template <bool kCausal>
void ExpectEachBlockOfEachSequenceOnce(const std::vector<int>& q_lengths,
                                       const std::vector<int>& kv_lengths, int heads, int ctas) {
  constexpr WgmmaShape kShape = Varlen(kCausal);
  const std::vector<int> cu_q = Cumulated(q_lengths);
  const std::vector<int> cu_kv = Cumulated(kv_lengths);
  const auto sequences = static_cast<int>(q_lengths.size());
  SequencePlanParams plan_params = {.cu_seqlens_q = cu_q.data(),
                                    .cu_seqlens_kv = cu_kv.data(),
                                    .sequences = sequences,
                                    .total_q = cu_q.back(),
                                    .total_kv = cu_kv.back(),
                                    .tile_m = TileM(kShape),
                                    .heads = heads,
                                    .group_size = 1,
                                    .bytes_of_key = int64_t{32} << 12};  // 256 keys: 1 head
  plan_params.capacity = static_cast<int>(
      MostSequenceBlocks(sequences, 0, std::max(cu_q.back(), 1), plan_params.tile_m));
  const Plan plan = PlanOf(plan_params);
  WgmmaParamsOf<kShape> params = {};
  params.heads = heads;
  params.blocks = plan.blocks.data();
  params.block_count = &plan.count;
  int counter = 0;
  params.next_tile = &counter;
  std::map<std::pair<int, int>, int> times;  // by head and row of O
  std::map<int, std::vector<WgmmaWork<kShape>>> produced;
  std::map<int, std::vector<WgmmaWork<kShape>>> consumed;
  RunQueues<kShape>(
      params, ctas, false,
      [&](int cta, auto& queue, int tile) { produced[cta].push_back(queue.Work(tile)); },
      [&](int cta, int thread, auto& queue, int tile) {
        if (thread == 40) consumed[cta].push_back(queue.Work(tile));
      });
  EXPECT_EQ(counter, 0);
  for (const auto& [cta, all] : produced) {
    ASSERT_EQ(consumed[cta].size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const WgmmaWork<kShape>& work = all[i];
      const WgmmaWork<kShape>& told = consumed[cta][i];
      EXPECT_EQ(std::tie(work.head, work.first_row, work.kv_tiles, work.seq_q, work.seq_kv),
                std::tie(told.head, told.first_row, told.kv_tiles, told.seq_q, told.seq_kv));
      EXPECT_EQ(told.first_lse, told.first_o);
      ++times[{told.head, told.first_o + told.first_row}];
      const auto sequence = static_cast<size_t>(
          std::upper_bound(cu_q.begin(), cu_q.end(), told.first_o + told.first_row) - cu_q.begin() -
          1);
      EXPECT_EQ(told.first_o, cu_q[sequence]);
      EXPECT_EQ(work.first_q, cu_q[sequence]);
      EXPECT_EQ(work.first_kv, cu_kv[sequence]);
      EXPECT_EQ(work.seq_q, q_lengths[sequence]);
      EXPECT_EQ(work.seq_kv, kv_lengths[sequence]);
      const int last_row = std::min(work.first_row + TileM(kShape), work.seq_q) - 1;
      const int keys = kCausal ? std::clamp(last_row + work.seq_kv - work.seq_q + 1, 0, work.seq_kv)
                               : work.seq_kv;
      EXPECT_EQ(work.kv_tiles, (keys + kShape.tile_n - 1) / kShape.tile_n);
    }
  }
  size_t expected = 0;
  for (size_t i = 0; i < q_lengths.size(); ++i) {
    for (int row = 0; row < q_lengths[i]; row += TileM(kShape)) {
      for (int head = 0; head < heads; ++head, ++expected) {
        EXPECT_EQ((times[{head, cu_q[i] + row}]), 1) << "sequence " << i << ", row " << row;
      }
    }
  }
  EXPECT_EQ(times.size(), expected);
}

TEST(EmulatedSchedule, HandsOutEachBlockOfPackedSequencesOnce) {
  std::vector<int> many;
  for (int i = 0; i < 2 * kPlanThreads + 3; ++i) many.push_back(i * 37 % 90);
  const std::vector<std::vector<int>> lengths = {
      {64}, {1}, {0}, {0, 0, 130, 0}, {5, 300, 64, 0, 1, 63, 65, 128, 0}, many};
  for (const std::vector<int>& q : lengths) {
    std::vector<int> kv(q.rbegin(), q.rend());
    for (const auto& [heads, ctas] : {std::pair(1, 1), std::pair(3, 4)}) {
      SCOPED_TRACE(testing::Message() << q.size() << " sequences, " << heads << " heads");
      ExpectEachBlockOfEachSequenceOnce<false>(q, kv, heads, ctas);
      ExpectEachBlockOfEachSequenceOnce<true>(q, q, heads, ctas);
    }
  }
}

TEST(EmulatedSchedule, PlansTheSequencesOfTheMostKeysFirst) {
  const std::vector<int> cu = Cumulated({10, 300, 64, 300, 128});
  const Plan plan = PlanOf({.cu_seqlens_q = cu.data(),
                            .cu_seqlens_kv = cu.data(),
                            .sequences = 5,
                            .total_q = cu.back(),
                            .total_kv = cu.back(),
                            .capacity = 100});
  std::vector<int> keys;
  for (const SequenceBlock& block : plan.blocks) keys.push_back(block.seq_kv);
  EXPECT_EQ(keys,
            (std::vector<int>{300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 128, 128, 64, 10}));
  EXPECT_EQ(plan.blocks[0].first_q, 10);
  EXPECT_EQ(plan.blocks[5].first_q, 374);
  EXPECT_EQ(plan.blocks[9].first_block, 5);
}

// Whatever stands there: nothing outside of the tensors is read, and nothing behind the list
// written.
TEST(EmulatedSchedule, PlansNoRowThatTheTensorsDontHave) {
  const std::vector<int> cu = {-5, 90, 20, 1 << 30, 7, 100};
  const Plan plan = PlanOf({.cu_seqlens_q = cu.data(),
                            .cu_seqlens_kv = cu.data(),
                            .sequences = 5,
                            .total_q = 100,
                            .total_kv = 80,
                            .capacity = 3});
  EXPECT_EQ(plan.count, 3);
  for (const SequenceBlock& block : plan.blocks) {
    EXPECT_GE(block.first_q, 0);
    EXPECT_GT(block.seq_q, 0);
    EXPECT_LE(block.first_q + block.seq_q, 100);
    EXPECT_GE(block.first_kv, 0);
    EXPECT_GE(block.seq_kv, 0);
    EXPECT_LE(block.first_kv + block.seq_kv, 80);
  }
}

TEST(EmulatedSchedule, PlansBatchesOfOneLengthWithoutCumulatedOnes) {
  const Plan plan = PlanOf({.sequences = 3,
                            .total_q = 2 * 100 + 70,
                            .total_kv = 2 * 90 + 80,
                            .seq_q = 70,
                            .seq_kv = 80,
                            .q_step = 100,
                            .kv_step = 90,
                            .o_step = 75,
                            .lse_step = 1000,
                            .capacity = 6});
  ASSERT_EQ(plan.count, 6);
  for (int i = 0; i < 6; ++i) {
    const SequenceBlock& block = plan.blocks[static_cast<size_t>(i)];
    EXPECT_EQ(block.first_q, i / 2 * 100);
    EXPECT_EQ(block.first_kv, i / 2 * 90);
    EXPECT_EQ(block.first_o, i / 2 * 75);
    EXPECT_EQ(block.first_lse, i / 2 * 1000);
    EXPECT_EQ(block.first_block, i / 2 * 2);
    EXPECT_EQ(std::pair(block.seq_q, block.seq_kv), std::pair(70, 80));
  }
}

}  // namespace
}  // namespace warpledger::sdpa
