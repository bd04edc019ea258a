// SPDX-License-Identifier: Apache-2.0
// How rows of queries are laid out over tiles of the wgmma family, and keys over CTAs. Host-safe.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_PLAN_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "kernels/sdpa/shared/heads_in_flight.h"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// Positions of the sequence in a tile, each with the rows of all heads of a group where they
// are packed: 0 if a group has more heads than a tile has rows.
constexpr int WgmmaPositions(const WgmmaShape& s, int group_size) {
  return s.pack_heads ? TileM(s) / group_size : TileM(s);
}

// What the last CTA of a tile reads by itself when it joins the parts: more would take longer
// than the keys that further CTAs save.
inline constexpr int64_t kMaxJoinBytes = int64_t{256} << 10;

// CTAs that share the keys of a tile: as many as there are SMs for, one on each, as there are
// tiles of keys, and, where one CTA joins them, as are worth joining; where they are a cluster,
// as it may have (PlaceClusters takes fewer where the GPU has no room for these).
//   tiles: of queries, over all heads
//   rows: of queries in a tile, at the most
constexpr int WgmmaSplits(const WgmmaShape& s, int tiles, int rows, int seq_kv, int sm_count) {
  const int kv_tiles = (seq_kv + s.tile_n - 1) / s.tile_n;
  const int joined = s.cluster_join ? kMaxClusterSplits
                     : s.join_kernel
                         ? kMaxWgmmaSplits
                         : static_cast<int>(kMaxJoinBytes / (int64_t{rows} * s.head_dim * 4));
  const int slots = std::min(sm_count, kMaxWgmmaPartials);
  return std::max(1, std::min({slots / tiles, kMaxWgmmaSplits, kv_tiles, joined}));
}

// The bus of an H200's DRAM (NVIDIA's product brief of the H200 NVL). An H100's has 5120 bits.
inline constexpr int kH200BusBits = 6016;

// Whether half of the SMs have done with the products of their keys before DRAM has brought all K
// and V. Both times grow with the keys alone, so that head_dim and the GPU say it: a CTA takes some
// 7 us for 1024 keys at head_dim 64 and 9.5 at 128; of head_dim 256 only calls say that DRAM takes
// longer (reports/decisions/0052-ctas-where-dram-is-fast.md).
constexpr bool HalfOfSmsKeepDramBusy(int head_dim, int dram_bus_bits) {
  return head_dim > 128 || (head_dim == 128 && dram_bus_bits < kH200BusBits);
}

// Fewer CTAs than those, where K and V come from DRAM: one to each pair of SMs (a TPC). They keep
// DRAM as busy and leave half as many parts. Of 8192 keys, 8 K/V heads and head_dim 128 an H100
// took 0.4 us of 16.6 less with 8 CTAs a tile than with 16; with 7, 9, 10 or 12 it took 0.3 to 0.7
// more than with 8 (reports/decisions/0046-packed-sequences.md).
//   tiles: of which no two read the same keys; where two do, products take longer than DRAM
//   splits: by WgmmaSplits
constexpr int WgmmaSplitsOverPairs(int head_dim, int tiles, int splits, int sm_count,
                                   int dram_bus_bits) {
  if (!HalfOfSmsKeepDramBusy(head_dim, dram_bus_bits)) return splits;
  const int pairs = sm_count / 2;
  const int fewer = pairs / tiles;
  // Fewer than four were not tried. With pairs to spare, 12 tiles, there was no gain.
  const bool fills = fewer >= 4 && 16 * fewer * tiles >= 15 * pairs;
  return fills && fewer < splits ? fewer : splits;
}

// Whether a cluster of those CTAs joins faster than a kernel behind them: where they are no more
// than a cluster may have on any GPU. With 8 tiles and 2 to 8 queries it took 0.2 to 0.5 us of 16
// to 17 less. Clusters of nine took 2 to 5 us more than of eight.
inline constexpr int kPortableCluster = 8;
//   splits: by WgmmaSplits, where a kernel joins
constexpr bool WgmmaSharesInCluster(int head_dim, int tiles, int query_tiles, int splits,
                                    int sm_count, int dram_bus_bits) {
  const int over_pairs =
      WgmmaSplitsOverPairs(head_dim, tiles, kMaxWgmmaSplits, sm_count, dram_bus_bits);
  return query_tiles == 1 && over_pairs <= kPortableCluster && over_pairs <= splits;
}

// With keep_k, tiles of queries that a CTA takes with one copy of K: all of a head, if its tiles of
// keys fit into the ring and heads are many enough that few SMs wait in the last round.
constexpr int WgmmaTilesAtOnce(const WgmmaShape& s, int query_tiles, int heads, int seq_kv,
                               int sm_count) {
  if (!s.keep_k || seq_kv > KStages(s) * s.tile_n) return 1;
  const int rounds = (heads + sm_count - 1) / sm_count;
  return int64_t{8} * heads >= int64_t{7} * rounds * sm_count ? query_tiles : 1;
}

constexpr int64_t BytesOfKey(const WgmmaShape& s) {
  return int64_t{s.head_dim} * 2 * ElementBytes(s);
}
//   group_size: query heads to a K/V head
constexpr int WgmmaHeadsInFlight(const WgmmaShape& s, int seq_kv, int group_size, int heads) {
  return HeadsInFlight(seq_kv * BytesOfKey(s), s.pack_heads ? 1 : group_size, heads);
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_PLAN_H_
