// SPDX-License-Identifier: Apache-2.0
// In which order heads' tiles of queries are handed out. Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_HEADS_IN_FLIGHT_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_HEADS_IN_FLIGHT_H_

#include <algorithm>
#include <cstdint>

namespace warpledger::sdpa {

// Heads whose tiles are handed out together: as many as have K and V of half of an H200's 60 MB
// of L2 between them, so that those are read from there; at least all that share a K and V. They
// are equal shares of all heads: under the causal mask the longest tiles of each share go first, so
// that a small last share would begin with long tiles where the others end
// (reports/decisions/0050-equal-shares-of-heads.md).
//   kv_bytes: of a head's K and V
//   group_size: heads of tiles to a K/V head
//   heads: of tiles, over the batch
constexpr int HeadsInFlight(int64_t kv_bytes, int group_size, int heads) {
  constexpr int64_t kBytes = int64_t{32} << 20;
  const int64_t most = std::max<int64_t>(kBytes / kv_bytes, 1);
  const int64_t kvs = (heads + group_size - 1) / group_size;
  const int64_t shares = (kvs + most - 1) / most;
  return static_cast<int>(std::min<int64_t>((kvs + shares - 1) / shares * group_size, heads));
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_HEADS_IN_FLIGHT_H_
