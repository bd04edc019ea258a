// SPDX-License-Identifier: Apache-2.0
// In what form a configuration's kernels read K and V, and so what the host prepares for them.
//
//   const KvStorage storage = KvStorageOf(config);
//   if (storage.quantised) inputs = WithQuantisedKv(problem, inputs, storage.scheme);

#ifndef WARPLEDGER_KERNELS_SDPA_KV_STORAGE_H_
#define WARPLEDGER_KERNELS_SDPA_KV_STORAGE_H_

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/kv_scheme.h"

namespace warpledger::sdpa {

// What a configuration's kernels read K and V as.
struct KvStorage {
  bool quantised = false;  // else the problem's dtype
  KvScheme scheme = {};
  bool queries = false;  // Q too, with a scale per head; and P is rounded to the format

  friend constexpr bool operator==(const KvStorage&, const KvStorage&) = default;
};
constexpr KvStorage KvStorageOf(const Config& c) {
  if (FamilyOf(c) == Family::kWgmma && c.wgmma_fp8 != 0) {
    const bool blocks = c.wgmma_fp8_block_scale != 0;
    return {.quantised = true,
            .scheme = {.format = KvFormat::kE4m3,
                       .scope = blocks ? ScaleScope::kBlock : ScaleScope::kHead,
                       .block_keys = kFp8Tile.tile_n},
            .queries = true};
  }
  const MmaShape s = MmaShapeOf(c);
  if (FamilyOf(c) != Family::kMma || !Is8Bit(s)) return {};
  return {.quantised = true,
          .scheme = {.format = s.kv == MmaKv::kE4m3   ? KvFormat::kE4m3
                               : s.kv == MmaKv::kE5m2 ? KvFormat::kE5m2
                                                      : KvFormat::kUint8,
                     .scope = s.kv_block_scale ? ScaleScope::kBlock : ScaleScope::kHead,
                     .block_keys = s.tile_n}};
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_KV_STORAGE_H_
