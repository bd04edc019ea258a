// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/library/costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/sdpa/library/fitted_costs.h"
#include "kernels/sdpa/mma/plan.h"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/rules/families.h"
#include "kernels/sdpa/wgmma/plan.h"

namespace warpledger::sdpa {
namespace {

constexpr int kSmemPerSm = 228 << 10;  // of sm_90
// The small-problem kernel is for small problems. With large logits and 26,496 keys and more its
// LSE was off by 2% to 45% more than the rule allows (reports/decisions/0037-one-call.md).
constexpr int kMostResidentKeys = 4096;

// What a form without costs of its own takes of the time of the kernel above it, about.
constexpr double kFasterForm = 0.97;
// Factor of a form that can't gain what it is for: a kernel that keeps K and V where they don't
// fit, beside the one that reads them anew, and pairs of CTAs in short calls.
constexpr double kSlowerForm = 1.03;
// A tie goes to the kernel that a form is of.
constexpr double kTiedForm = 1.002;

// Pairs of CTAs read K and V once for both, which saves power. Where each contender runs alone that
// gains up to 3.4% in calls of 0.8 ms and more, and at most 0.7% below 0.4 ms. In random problems
// of up to 0.3 ms pairs are the fastest in 4 of 720, by 2% at most, and up to 10% slower where
// costs have them first (reports/decisions/0037-one-call.md).
constexpr double kLeastUsOfPairs = 400;

// The records of the fit are of H200s. By the datasheets the DRAM of an H100, whose bus is
// narrower, has 3.35 of their 4.8 TB/s.
constexpr double kNarrowerBus = 4.8 / 3.35;
static_assert(Gpu{}.dram_bus_bits == kH200BusBits);

// The launch that lists packed sequences' blocks.
constexpr double kPlanUs = 2;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Tiles of queries over the heads of a launch, and the keys that each reads.
struct Tiling {
  int64_t heads = 1;        // over the batch: of queries, or of K/V where they share a tile
  int64_t query_tiles = 1;  // of each
  int64_t positions = 1;    // of the sequence, in a tile of queries
  int keys = 1;             // of a tile of keys
  int key_groups = 1;       // of a CTA, that take a tile of keys each at a time
  int64_t splits = 1;       // CTAs that share a tile's keys
  int64_t slots = 1;        // CTAs that the GPU holds at once
  int pieces = 1;           // of a tile of queries, that its CTA takes one after another
  int cluster = 1;          // SMs that a CTA stands for here
  int64_t rows = 1;         // of queries in a tile, over the heads that share it
  bool half_tiles = false;  // a tile of keys of which no more than half is seen counts half
  bool by_length = true;    // CTAs begin with the longest under the mask; else head by head

  int64_t ctas() const { return heads * query_tiles * splits; }
  int ctas_per_sm(const Gpu& gpu) const { return static_cast<int>(slots * cluster / gpu.sms); }
};

// Tiles of keys that a CTA of the tile of queries `at` reads, over all its pieces; where groups
// take tiles beside one another, those of one group.
double KeyTiles(const Problem& p, const Tiling& tiling, int64_t at) {
  const auto tiles_of = [&](int64_t keys) {
    if (tiling.half_tiles) return static_cast<double>(CeilDiv(2 * keys, tiling.keys)) / 2;
    const int64_t share = CeilDiv(CeilDiv(keys, tiling.keys), tiling.splits);
    return static_cast<double>(CeilDiv(share, tiling.key_groups));
  };
  if (!p.causal) return tiling.pieces * tiles_of(p.seq_kv);
  double tiles = 0;
  // From the last piece on: those before one that sees no key see none.
  for (int64_t piece = tiling.pieces; piece > 0; --piece) {
    const int64_t rows = at * tiling.positions + piece * (tiling.positions / tiling.pieces);
    const int64_t last = std::min<int64_t>(p.seq_q, rows) - 1;
    const int64_t keys = last + p.seq_kv - p.seq_q + 1;
    if (keys <= 0) break;
    tiles += tiles_of(std::min<int64_t>(keys, p.seq_kv));
  }
  return tiles;
}

// Tiles of keys on average over the tiles of queries. Under the mask they grow by the same number
// from tile to tile once the first key is seen.
double MeanKeyTiles(const Problem& p, const Tiling& tiling) {
  constexpr int64_t kAll = 64;
  const int64_t taken = std::min(tiling.query_tiles, p.causal ? kAll : 1);
  double sum = 0;
  for (int64_t i = 0; i < taken; ++i) {
    sum += KeyTiles(p, tiling, (2 * i + 1) * tiling.query_tiles / (2 * taken));
  }
  return sum / static_cast<double>(taken);
}

// What the slot that ends last does.
struct Chain {
  double tiles = 0;   // of keys
  int64_t ctas = 0;   // whose they are
  double beside = 0;  // of its tiles, those while all slots have work
  int64_t slots = 0;  // that still have work after that
};

// The longest chain on one slot. Under the mask slots take the next tile of queries as they come
// free: the longest that is left, as kernels do among heads that share L2, or head by head from the
// shortest on. Where that would be many steps, it is the longest tile or an equal share of all,
// and head by head half of the longest more.
Chain LongestChain(const Problem& p, const Tiling& tiling, double mean) {
  const int64_t most_rounds = tiling.by_length ? 16 : 4;
  constexpr int64_t kMostTiles = 256;
  // A CTA's start and end take about as long as so many keys.
  constexpr double kKeysOfCta = 256;
  const double longest = KeyTiles(p, tiling, tiling.query_tiles - 1);
  const int64_t rounds = CeilDiv(tiling.ctas(), tiling.slots);
  if (!p.causal) {
    const int64_t whole = tiling.ctas() / tiling.slots;
    return {longest * static_cast<double>(rounds), rounds, longest * static_cast<double>(whole),
            tiling.ctas() % tiling.slots};
  }
  if (rounds > most_rounds || tiling.query_tiles > kMostTiles) {
    const double share =
        mean * static_cast<double>(tiling.ctas()) / static_cast<double>(tiling.slots);
    return {std::max(longest, share + (tiling.by_length ? 0 : longest / 2)), rounds, share, 0};
  }
  struct Group {  // slots that do the same
    double ends = 0;
    double tiles = 0;
    int64_t ctas = 0;
    int64_t slots = 0;
  };
  const auto later = [](const Group& a, const Group& b) { return a.ends > b.ends; };
  std::vector<Group> groups = {{.slots = tiling.slots}};
  const auto take = [&](double tiles, int64_t ctas) {
    while (ctas > 0) {
      std::pop_heap(groups.begin(), groups.end(), later);
      Group& first = groups.back();
      Group then = first;
      then.slots = std::min(ctas, first.slots);
      ctas -= then.slots;
      first.slots -= then.slots;
      if (first.slots == 0) {
        groups.pop_back();
      } else {
        std::push_heap(groups.begin(), groups.end(), later);
      }
      then.ends += tiles + kKeysOfCta / (tiling.keys * tiling.key_groups);
      then.tiles += tiles;
      ++then.ctas;
      groups.push_back(then);
      std::push_heap(groups.begin(), groups.end(), later);
    }
  };
  if (tiling.by_length) {
    for (int64_t at = tiling.query_tiles - 1; at >= 0; --at) {
      take(KeyTiles(p, tiling, at), tiling.heads * tiling.splits);
    }
  } else {
    std::vector<double> tiles(tiling.query_tiles);
    for (int64_t at = 0; at < tiling.query_tiles; ++at) tiles[at] = KeyTiles(p, tiling, at);
    for (int64_t head = 0; head < tiling.heads; ++head) {
      for (const double each : tiles) take(each, tiling.splits);
    }
  }
  const Group& last = *std::min_element(groups.begin(), groups.end(), later);
  const Group& first = groups.front();
  int64_t slots = 0;
  for (const Group& group : groups) slots += group.ends > first.ends ? group.slots : 0;
  return {last.tiles, last.ctas, first.tiles, slots};
}

Config Compiled(const LibraryKernel& kernel, const Problem& p) {
  return Specialise(kernel.config, p.head_dim, p.causal, p.dtype);
}

// CTAs with a tile each that an SM holds at once. Two are as many as registers allow: 127 for each
// of 256 threads at head_dim 64, the only one where shared memory has room for two.
int WgmmaCtasPerSm(const WgmmaShape& shape) {
  constexpr int kMostByRegisters = 2;
  constexpr int kReserved = 1 << 10;  // of each CTA's shared memory
  return std::clamp(kSmemPerSm / (MakeSmem(shape).bytes + kReserved), 1, kMostByRegisters);
}

Tiling TilingOf(const LibraryKernel& kernel, const Problem& p, const Gpu& gpu) {
  const Config config = Compiled(kernel, p);
  const int group = p.heads_q / p.heads_kv;
  const int64_t heads_q = int64_t{p.batch} * p.heads_q;
  const int64_t heads_kv = int64_t{p.batch} * p.heads_kv;
  Tiling t;
  switch (FamilyOf(config)) {
    case Family::kResident: {
      const ResidentShape shape = ResidentShapeOf(config);
      // CTAs of a cluster divide the keys, as splits do; the warpgroups of one do it again.
      t = {.heads = heads_q,
           .query_tiles = CeilDiv(p.seq_q, kRowsPerConsumer),
           .positions = kRowsPerConsumer,
           .keys = ChunkKeys(shape) * shape.warpgroups,
           .splits = shape.cluster,
           .slots = int64_t{gpu.sms} * (shape.warpgroups == 1 ? 3 : 1),  // by registers
           .by_length = false};
      break;
    }
    case Family::kWgmma: {
      const WgmmaShape shape = WgmmaShapeOf(config);
      // The CTAs of a cluster take as long as the one with the most keys. Where K stays, a CTA
      // takes all tiles of a head.
      const int tiles_of_head = static_cast<int>(CeilDiv(p.seq_q, WgmmaPositions(shape, group)));
      const int64_t heads = shape.pack_heads ? heads_kv : heads_q;
      constexpr int64_t kMany = std::numeric_limits<int>::max();
      const int pieces = WgmmaTilesAtOnce(
          shape, tiles_of_head, static_cast<int>(std::min(heads, kMany)), p.seq_kv, gpu.sms);
      const int64_t positions = int64_t{WgmmaPositions(shape, group)} * shape.cluster * pieces;
      const int at_once = shape.tile_per_cta ? WgmmaCtasPerSm(shape) : 1;
      t = {.heads = heads,
           .query_tiles = CeilDiv(p.seq_q, positions),
           .positions = positions,
           .keys = shape.tile_n,
           .slots = std::max<int64_t>(int64_t{gpu.sms} * at_once / shape.cluster, 1),
           .pieces = pieces,
           .cluster = shape.cluster,
           .rows = std::min(positions, int64_t{p.seq_q}) * (shape.pack_heads ? group : 1),
           .half_tiles = shape.own_tiles && shape.tile_n % 128 == 0 && !shape.fp8};
      const int64_t tiles = t.heads * t.query_tiles;
      if (shape.split_kv && tiles <= gpu.sms) {
        const int rows = std::min(TileM(shape), p.seq_q * (shape.pack_heads ? group : 1));
        t.splits = WgmmaSplits(shape, static_cast<int>(tiles), rows, p.seq_kv, gpu.sms);
      }
      break;
    }
    case Family::kMma: {
      const MmaShape shape = MmaShapeOf(config);
      const int packed = shape.pack_heads ? group : 1;
      const int per_sm = CtasPerSm(shape, {.sms = gpu.sms, .smem_per_sm = gpu.smem_bytes + 1024});
      t = {.heads = shape.pack_heads ? heads_kv : heads_q,
           .query_tiles = CeilDiv(int64_t{p.seq_q} * packed, TileM(shape)),
           .positions = std::max(1, TileM(shape) / packed),
           .keys = shape.tile_n,
           .key_groups = shape.key_groups,
           .slots = int64_t{gpu.sms} * per_sm,
           .rows = std::min<int64_t>(TileM(shape), int64_t{p.seq_q} * packed),
           .by_length = shape.longest_first};
      const int64_t tiles = t.heads * t.query_tiles;
      if (shape.split_kv && tiles < kMaxPartials) {
        t.splits = MmaSplits(shape, static_cast<int>(tiles), p.seq_kv, static_cast<int>(t.slots));
      }
      break;
    }
    case Family::kSmem:
      break;
  }
  return t;
}

// What tiles' work and DRAM take beside each other: the longer of the two, and up to 9% more where
// they are equal, because neither is steady.
double UsOfBoth(double tiles, double dram) {
  constexpr double kSharpness = 8;
  const double longer = std::max(tiles, dram);
  if (longer <= 0) return 0;
  const double shorter = std::min(tiles, dram) / longer;
  return longer * std::pow(1 + std::pow(shorter, kSharpness), 1 / kSharpness);
}

}  // namespace

std::span<const LibraryKernel> KernelsFor(const Gpu& gpu) {
  if (gpu.has_wgmma) return kLibraryKernels;
  return kMmaKernels;
}

bool Takes(const LibraryKernel& kernel, const Problem& p) {
  if (kernel.head_dim != p.head_dim || kernel.dtype != p.dtype || p.embed_dim != 0) return false;
  const int group = p.heads_q / p.heads_kv;
  constexpr int kMaxGridYz = 65535;
  switch (FamilyOf(kernel.config)) {
    case Family::kResident:
      if (p.seq_kv > kMostResidentKeys || group > kMaxGridYz ||
          int64_t{p.batch} * p.heads_kv > kMaxGridYz)
        return false;
      break;
    case Family::kWgmma:
      if (kernel.config.wgmma_pack_heads && group > kRowsPerConsumer) return false;
      break;
    case Family::kMma:
    case Family::kSmem:
      break;
  }
  return TilingOf(kernel, p, {1}).ctas() <= std::numeric_limits<int>::max();
}

int CtasPerSm(const LibraryKernel& kernel, const Problem& p, const Gpu& gpu) {
  return TilingOf(kernel, p, gpu).ctas_per_sm(gpu);
}

CostTerms CostTermsOf(const LibraryKernel& kernel, const Problem& p, const Gpu& gpu) {
  const Tiling t = TilingOf(kernel, p, gpu);
  const double mean = MeanKeyTiles(p, t);
  const auto ctas = static_cast<double>(t.ctas());
  const auto slots = static_cast<double>(t.slots);
  const double megabyte = 1e6;
  const bool combines = t.splits > 1 && FamilyOf(kernel.config) != Family::kResident;
  const double trips = combines && FamilyOf(kernel.config) == Family::kMma
                           ? MmaJoinTrips(MmaShapeOf(Compiled(kernel, p)), static_cast<int>(t.rows),
                                          static_cast<int>(t.splits))
                           : 0;
  const double output = static_cast<double>(QueryElements(p)) * 4 / megabyte;
  const int bytes = TakesE4m3(kernel) ? 1 : 2;
  const double queries =
      static_cast<double>(QueryElements(p)) * (bytes + (WritesE4m3(kernel) ? 1 : 2)) / megabyte;
  const double keys = static_cast<double>(2 * KeyElements(p)) * bytes / megabyte;
  const Chain chain = LongestChain(p, t, mean);
  const int per_sm = t.ctas_per_sm(gpu);
  const auto rounds = static_cast<double>(
      t.pieces * std::min(CeilDiv(t.ctas() * t.cluster, gpu.sms), chain.ctas * per_sm));
  const auto waves = static_cast<double>(t.pieces * chain.ctas);
  const double longest = std::ceil(KeyTiles(p, t, t.query_tiles - 1));
  const double work = mean * ctas / slots;
  const auto sharing = static_cast<double>(
      std::min<int64_t>(per_sm, CeilDiv(std::max<int64_t>(chain.slots, 1) * t.cluster, gpu.sms)));
  return {1,
          p.causal ? 1.0 : 0.0,
          rounds,
          waves,
          rounds / std::max(longest, 1.0),
          std::min(longest, 3.0),
          combines ? 1.0 : 0.0,
          trips,
          combines ? std::sqrt(static_cast<double>(t.rows * t.splits)) : 0.0,
          combines ? output : 0.0,
          queries,
          keys,
          std::sqrt(queries + keys),
          std::max(chain.tiles - std::max(work, longest), 0.0),
          chain.tiles,
          chain.beside * per_sm + (chain.tiles - chain.beside) * sharing,
          work,
          p.causal ? work : 0.0,
          waves,
          queries + keys};
}

bool TakesClusterForm(const LibraryKernel& kernel, const Problem& p, const Gpu& gpu) {
  if (!HasClusterForm(kernel)) return false;
  const Tiling t = TilingOf(kernel, p, gpu);
  return t.ctas() <= gpu.sms &&
         WgmmaSharesInCluster(kernel.head_dim, static_cast<int>(t.heads),
                              static_cast<int>(t.query_tiles), static_cast<int>(t.splits), gpu.sms,
                              gpu.dram_bus_bits);
}

double UsByCosts(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu) {
  const CostTerms terms = CostTermsOf(kernel, problem, gpu);
  double us = 0;
  double tiles = 0;
  double dram = 0;
  for (const FittedCosts& fitted : kFittedCosts) {
    if (fitted.name != CostsOf(kernel) || fitted.head_dim != kernel.head_dim) continue;
    for (int i = 0; i < kCostTerms; ++i) {
      (i < kFirstTileTerm ? us : i < kDramTerm ? tiles : dram) += fitted.us[i] * terms[i];
    }
  }
  if (gpu.dram_bus_bits < kH200BusBits) dram *= kNarrowerBus;
  return us + UsOfBoth(tiles, dram);
}

double ExpectedUs(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu) {
  const double us = UsByCosts(kernel, problem, gpu) + (kernel.config.varlen ? kPlanUs : 0);
  if (HasCostsOfForm(kernel)) return us * kFasterForm;
  const bool keeps_nothing =
      kernel.config.wgmma_keep_kv != 0 && TilingOf(kernel, problem, gpu).pieces == 1;
  const bool is_short_pair = kernel.config.kv_multicast != 0 && us < kLeastUsOfPairs;
  return us * (keeps_nothing || is_short_pair ? kSlowerForm
               : kernel.form_of.empty()       ? 1
                                              : kTiedForm);
}

// The two figures are about those of an H200 that ran tiled_mma and split_mma (0053-other-gpus.md):
// a warp of 16 rows takes longer for a product, because it loads K and V for fewer rows, and a CTA
// of 128 rows begins and ends slowly.
double MmaSteps(const LibraryKernel& kernel, const Problem& p, const Gpu& gpu) {
  constexpr int kTensorCores = 4;  // of an SM
  constexpr int kStepsOf16Rows = 4;
  constexpr int kStepsOfManyRows = 24;
  constexpr int kOneTileOfKeys = 2;  // nothing is copied beside its products
  const MmaShape shape = MmaShapeOf(Compiled(kernel, p));
  const Tiling t = TilingOf(kernel, p, gpu);
  const Chain chain = LongestChain(p, t, MeanKeyTiles(p, t));
  const int64_t ctas =
      std::min<int64_t>(t.ctas_per_sm(gpu), CeilDiv(std::max<int64_t>(chain.slots, 1), gpu.sms));
  const int64_t warps = ctas * (ConsumerThreads(shape) / 32);
  const double in_turn = std::max(1.0, static_cast<double>(warps) / kTensorCores);
  const int of_16_keys = shape.rows_per_warp == 16 ? kStepsOf16Rows : shape.rows_per_warp / 16;
  const int ahead = shape.stages == 0 ? kOneTileOfKeys : 1;
  return chain.tiles * (shape.tile_n / 16) * of_16_keys * in_turn * ahead +
         (TileM(shape) > 16 ? kStepsOfManyRows : 0);
}

}  // namespace warpledger::sdpa
