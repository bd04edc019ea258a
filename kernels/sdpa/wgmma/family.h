// SPDX-License-Identifier: Apache-2.0
// What the wgmma family says of its configurations (rules/families.h). Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_FAMILY_H_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_FAMILY_H_

#include <string_view>

#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/exclusion.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/shared/exp_method.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

struct WgmmaFamily {
  static constexpr Exclusion kExclusions[] = {
      {&Config::wgmma_exp, 2, &Config::wgmma_fp8, 1, 1,
       "its probabilities are raised by a power of two, in log2 units and beyond fp16's 11 bits"},
      {&Config::wgmma_skip_maxima, 1, &Config::wgmma_exp, 1, 1,
       "where a row has no maximum yet the polynomial is not infinite, and its sum tells nothing"},
      {&Config::wgmma_lazy_rescale, 1, &Config::wgmma_pack_heads, 1, 1,
       "rows behind a group that does not divide the tile hold what lay there, and would vote"},
  };
  static constexpr Bf16Exclusion kBf16Exclusions[] = {
      {&Config::wgmma_exp, 3, 3, "packed exponentials are of fp16"},
      {&Config::wgmma_exp, 1, 1,
       "by its polynomial a masked key keeps 2^-126, which is 0 in fp16 and not in bf16"},
  };

  // An instance for each mask: its prologue and code size count where it lives for 4 us.
  static constexpr bool kMaskAtRunTime = false;

  static constexpr Geometry GeometryOf(const Config& c) {
    const WgmmaShape s = WgmmaShapeOf(c);
    return {TileM(s), s.tile_n, s.stages, Threads(s), MakeSmem(s).bytes};
  }
  static constexpr InvalidReason WhyInvalid(const Config& c) {
    if (const InvalidReason reason = FirstExcludedInBf16(c, kBf16Exclusions)) return reason;
    if (const InvalidReason reason = FirstExcluded(c, kExclusions)) return reason;
    if (c.varlen) {
      if (!c.dynamic_schedule) {
        return Excluded("varlen", ToggleId(&Config::wgmma_tile_per_cta),
                        "how many tiles there are, the device alone knows");
      }
      for (const ToggleField other :
           {&Config::kv_multicast, &Config::wgmma_fp8, &Config::wgmma_cp_async,
            &Config::wgmma_inline_loads, &Config::wgmma_pack_heads, &Config::wgmma_split_kv,
            &Config::wgmma_tile_order, &Config::wgmma_dependent_launch, &Config::wgmma_keep_kv}) {
        if (c.*other == 0) continue;
        return Excluded("varlen", ToggleId(other), "it counts on one length for all");
      }
    }
    const std::string_view head_dim = HeadDimName(c.head_dim);
    const WgmmaTile tile = WgmmaTileFor(c);
    if (c.wgmma_fp8) {
      if (const InvalidReason reason = WhyInvalidInFp8(c, head_dim)) return reason;
    }
    if (c.wgmma_tile != 0 && c.wgmma_tile != 3 && c.consumer_warpgroups == 0) {
      return Excluded(&Config::wgmma_tile, "one warpgroup of rows",
                      "it takes the tile's own keys, or 64 (level 3)");
    }
    if (c.wgmma_tile >= 2 && c.consumer_warpgroups != 0 && c.head_dim == 256 && !c.wgmma_fp8) {
      return Excluded(&Config::wgmma_tile, head_dim,
                      "two stages of more than 80 keys don't fit into shared memory beside Q, and "
                      "64 keys are level 1");
    }
    if (c.kv_ring_stages > 1 && c.kv_ring_stages >= tile.stages) {
      return Excluded(&Config::kv_ring_stages, head_dim,
                      "the tile's own ring, level 1, is no deeper");
    }
    if (c.wgmma_more_registers && tile.consumers != 2) {
      return Excluded(&Config::wgmma_more_registers, head_dim,
                      "beside three warpgroups of 160 registers the producer has none to give");
    }
    if (c.wgmma_equal_registers && (c.head_dim != 64 || c.wgmma_tile != 1)) {
      return Excluded(&Config::wgmma_equal_registers, head_dim,
                      "only two warpgroups and 128 keys of head_dim 64 do with an equal share");
    }
    if (c.wgmma_late_wait && c.wgmma_pack_heads && ExpMethodOf(c) == ExpMethod::kExpMixed) {
      return Excluded(&Config::wgmma_late_wait, ToggleId(&Config::wgmma_pack_heads),
                      "rows behind a group that does not divide the tile hold what lay there, "
                      "beyond what the polynomial takes, and a sum below 0 traps");
    }
    if (c.wgmma_q_registers && c.head_dim == 256) {
      return Excluded(&Config::wgmma_q_registers, head_dim, "O leaves no registers for it");
    }
    if (c.wgmma_keep_kv && c.head_dim == 256) {
      return Excluded(&Config::wgmma_keep_kv, head_dim, "shared memory has no room for more tiles");
    }
    const WgmmaShape shape = WgmmaShapeOf(c);
    if (c.wgmma_keep_kv && StoresThroughQ(shape)) {
      return Excluded(&Config::wgmma_keep_kv, ToggleId(&Config::tma_store),
                      "beside more tiles of keys there is no place for O but Q's");
    }
    if (c.wgmma_q_registers && StoresThroughQ(shape)) {
      return Excluded(&Config::wgmma_q_registers, ToggleId(&Config::tma_store),
                      "O would leave through a place that is the next tile's");
    }
    if (c.wgmma_p_smem) {
      Config in_registers = c;
      in_registers.wgmma_p_smem = 0;
      if (shape.stages < WgmmaShapeOf(in_registers).stages) {
        return Excluded(&Config::wgmma_p_smem,
                        ToggleId(c.wgmma_tile != 0 ? &Config::wgmma_tile : &Config::kv_ring_stages),
                        "P's place beside Q leaves room for fewer stages than are asked for");
      }
      if (c.head_dim == 256 && c.wgmma_tile != 0) {
        return Excluded(&Config::wgmma_tile, head_dim, "beside P every tile has 64 keys");
      }
    }
    if (c.wgmma_cluster_join && !JoinFitsInRing(shape)) {
      return Excluded(
          &Config::wgmma_cluster_join, head_dim,
          "the tile's rows of O don't fit into the place of K and V, where they are left");
    }
    return {};
  }
  static constexpr KvStorage KvStorageOf(const Config& c) {
    if (!c.wgmma_fp8) return {};
    return {.quantised = true,
            .scheme = {.format = KvFormat::kE4m3,
                       .scope = c.wgmma_fp8_block_scale ? ScaleScope::kBlock : ScaleScope::kHead,
                       .block_keys = kFp8BlockKeys},
            .queries = true,
            .output = c.wgmma_fp8_output != 0};
  }
  static constexpr ExpMethod ExpMethodOf(const Config& c) { return kWgmmaExpMethods[c.wgmma_exp]; }
  static constexpr int MinArch(const Config&) { return 90; }

 private:
  static constexpr InvalidReason WhyInvalidInFp8(const Config& c, std::string_view head_dim) {
    if (c.wgmma_tile > 2) {
      return Excluded(&Config::wgmma_tile, ToggleId(&Config::wgmma_fp8),
                      "its kernels have no tile of fewer keys");
    }
    if (c.mask == Mask::kAtRunTime) return {};  // a configuration alone is of no head dimension yet
    if (c.wgmma_tile != 0 && (c.head_dim == 128 || (c.head_dim == 256 && c.wgmma_tile == 1))) {
      return Excluded(&Config::wgmma_tile, head_dim,
                      "in FP8 its own tile has two warpgroups and keys that divide 128");
    }
    if (c.wgmma_tile == 2 && c.head_dim == 256 && c.softmax_overlap) {
      return Excluded(&Config::wgmma_tile, ToggleId(&Config::softmax_overlap),
                      "beside O of head_dim 256, scores of 128 keys leave no registers for P V");
    }
    const WgmmaShape shape = WgmmaShapeOf(c);
    if (c.wgmma_fp8_block_scale && kFp8BlockKeys % shape.tile_n != 0) {
      return Excluded(&Config::wgmma_fp8_block_scale, head_dim,
                      "a tile of 96 or 192 keys has keys of two blocks of 128; wgmma_tile has 128");
    }
    return {};
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_FAMILY_H_
