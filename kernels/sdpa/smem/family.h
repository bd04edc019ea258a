// SPDX-License-Identifier: Apache-2.0
// What the smem family says of its configurations (rules/families.h). Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_SMEM_FAMILY_H_
#define WARPLEDGER_KERNELS_SDPA_SMEM_FAMILY_H_

#include <span>

#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/exclusion.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/shared/exp_method.h"
#include "kernels/sdpa/smem/shape.h"
#include "kernels/sdpa/smem/smem_layout.h"

namespace warpledger::sdpa {

struct SmemFamily {
  static constexpr Exclusion kExclusions[] = {
      {&Config::xor_swizzle, 1, &Config::wmma_qk, 1, kAnyLevel,
       "wmma::load_matrix_sync takes one leading dimension for a whole fragment, and a swizzled "
       "tile has none"},
      {&Config::xor_swizzle, 1, &Config::wmma_pv, 1, kAnyLevel,
       "wmma::load_matrix_sync takes one leading dimension for a whole fragment, and a swizzled "
       "tile has none"},
      {&Config::softmax_in_registers, 2, &Config::sp_reuse, 1, kAnyLevel,
       "with S in registers there is no buffer that P could reuse"},
      {&Config::softmax_in_registers, 2, &Config::tile_m, 16, 16,
       "four warps would share 16 rows, and a tile has not enough blocks of 16 keys for them"},
      {&Config::softmax_in_registers, 2, &Config::tile_n, 16, 16,
       "two warps share 16 rows, and a tile has one block of 16 keys"},
      {&Config::producer_warps, 1, &Config::sp_reuse, 1, kAnyLevel,
       "without a barrier at each tile's start the next S would overwrite P while it is read"},
      {&Config::persistent, 1, &Config::producer_warps, 1, kAnyLevel,
       "the producer has no view of the queue of work"},
  };
  static constexpr std::span<const Bf16Exclusion> kBf16Exclusions = {};

  static constexpr bool kMaskAtRunTime = true;

  static constexpr Geometry GeometryOf(const Config& c) {
    return {smem::TileM(c), smem::TileN(c), smem::Stages(c), smem::Threads(c),
            smem::MakeSmemLayout(c).bytes};
  }
  static constexpr InvalidReason WhyInvalid(const Config& c) {
    if (const InvalidReason reason = WhyNoBf16(c)) return reason;
    if (const InvalidReason reason = FirstExcluded(c, kExclusions)) return reason;
    if (smem::MakeSmemLayout(c).bytes > kMaxCtaSmemBytes) {
      // One that is on: with the tile's own rows and keys two stages fit at every head_dim.
      return Excluded(c.cp_async_stages > 2 ? &Config::cp_async_stages
                      : c.tile_m > 32       ? &Config::tile_m
                                            : &Config::tile_n,
                      HeadDimName(c.head_dim),
                      "the tiles need more than the 227 KiB of shared memory that a CTA may have");
    }
    return {};
  }
  static constexpr KvStorage KvStorageOf(const Config&) { return {}; }
  static constexpr ExpMethod ExpMethodOf(const Config& c) {
    return static_cast<ExpMethod>(c.exp_method);
  }
  static constexpr int MinArch(const Config&) { return 0; }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SMEM_FAMILY_H_
