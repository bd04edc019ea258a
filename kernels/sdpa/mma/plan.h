// SPDX-License-Identifier: Apache-2.0
// How a launch of the mma family is laid out over the GPU. Host-safe.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_PLAN_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "kernels/sdpa/mma/params.h"
#include "kernels/sdpa/mma/shape.h"

namespace warpledger::sdpa {

// What a plan must know of the GPU.
struct MmaDevice {
  int sms = 1;
  int smem_per_sm = 0;  // bytes
  int64_t l2_bytes = 0;
};

// CTAs of the shape that an SM holds, by registers and shared memory.
constexpr int CtasPerSm(const MmaShape& s, const MmaDevice& device) {
  constexpr int kReservedBytes = 1024;  // of each CTA, by the system
  const int by_smem = device.smem_per_sm / (MakeSmem(s).bytes + kReservedBytes);
  return std::max(1, std::min(by_smem, MinCtasPerSm(s)));
}

// CTAs that share a tile's keys, where they do at all: as many as the GPU has room for. Under a
// full mask none is without a tile of keys; under a causal one some rows see fewer.
//   tiles: of queries, over all heads
//   slots: CTAs that the GPU holds at once
constexpr int MmaSplits(const MmaShape& s, int tiles, int seq_kv, int slots) {
  const int kv_tiles = (seq_kv + s.tile_n - 1) / s.tile_n;
  const int most = std::min({kMaxSplits, kMaxPartials / tiles, kv_tiles / s.key_groups});
  const int shares = std::max(1, std::min(slots / tiles, most));
  const int tiles_of_share = (kv_tiles + shares - 1) / shares;
  return (kv_tiles + tiles_of_share - 1) / tiles_of_share;
}

// How often the CTA that joins parts waits for loads of them (MmaEpilogue::CombineSplits).
//   rows: of queries in a tile
constexpr int MmaJoinTrips(const MmaShape& s, int rows, int splits) {
  const int pieces = rows * s.head_dim / 4;
  const int groups = std::max(ConsumerThreads(s) / pieces, 1);
  const int parts = (splits + groups - 1) / groups;
  const auto trips = [](int of, int at_once) { return (of + at_once - 1) / at_once; };
  return trips(pieces, ConsumerThreads(s)) * trips(parts, kJoinedAtOnce);
}

// Everything of `params` but the instance's own memory. Returns the CTAs of the grid.
constexpr unsigned PlanMma(const ForwardParams& forward, const MmaShape& s, const MmaDevice& device,
                           MmaParams* params) {
  MmaParams p;
  p.forward = forward;
  p.group_size = forward.heads_q / forward.heads_kv;
  p.heads = forward.batch * (s.pack_heads ? forward.heads_kv : forward.heads_q);
  p.rows = forward.seq_q * (s.pack_heads ? p.group_size : 1);
  p.query_tiles = (p.rows + TileM(s) - 1) / TileM(s);
  p.tiles = p.heads * p.query_tiles;
  // Half of L2 for K and V, the rest for Q and O on their way.
  const int64_t kv_bytes_per_head = int64_t{forward.seq_kv} * KvColumns(s) * 2 * 2;
  const int64_t kv_heads_in_l2 = std::max<int64_t>(1, device.l2_bytes / 2 / kv_bytes_per_head);
  p.heads_in_flight = static_cast<int>(
      std::min<int64_t>(kv_heads_in_l2 * (s.pack_heads ? 1 : p.group_size), p.heads));

  const int slots = device.sms * CtasPerSm(s, device);
  unsigned ctas = static_cast<unsigned>(p.tiles);
  if (s.split_kv) {
    p.splits = MmaSplits(s, p.tiles, forward.seq_kv, slots);
    ctas = static_cast<unsigned>(p.tiles * p.splits);
  } else if (IsPersistent(s)) {
    ctas = static_cast<unsigned>(std::min(p.tiles, slots));
  }
  *params = p;
  return ctas;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_PLAN_H_
