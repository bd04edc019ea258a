// SPDX-License-Identifier: Apache-2.0
// What the mma family says of its configurations (rules/families.h). Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_MMA_FAMILY_H_
#define WARPLEDGER_KERNELS_SDPA_MMA_FAMILY_H_

#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/exclusion.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/shared/exp_method.h"

namespace warpledger::sdpa {

struct MmaFamily {
  static constexpr Exclusion kExclusions[] = {
      {&Config::mma_bulk_copy, 1, &Config::mma_smem_layout, 1, 1,
       "a bulk copy without a tensor map keeps a row's chunks in order"},
      {&Config::fuse_projection, 1, &Config::mma_tile, 1, kAnyLevel,
       "a CTA projects 64 rows at a time, which its tiles of queries and keys must have"},
      {&Config::fuse_projection, 1, &Config::mma_longest_first, 1, kAnyLevel,
       "the CTAs of a head are neighbours, or they could be no cluster"},
  };
  static constexpr Bf16Exclusion kBf16Exclusions[] = {
      {&Config::mma_fp16_accumulate, 1, kAnyLevel,
       "mma.sync accumulates products of bf16 in fp32 alone"},
      {&Config::mma_exp, 3, 3, "packed exponentials are of fp16"},
      {&Config::mma_exp, 4, 5,
       "by its polynomial a masked key keeps 2^-126, which is 0 in fp16 and not in bf16"},
      {&Config::mma_kv_dtype, 1, kAnyLevel,
       "8-bit codes become fp16, for which the operands are fp16"},
  };

  static constexpr bool kMaskAtRunTime = true;

  static constexpr Geometry GeometryOf(const Config& c) {
    const MmaShape s = MmaShapeOf(c);
    return {TileM(s), s.tile_n, Stages(s), Threads(s), MakeSmem(s).bytes};
  }
  static constexpr InvalidReason WhyInvalid(const Config& c) {
    if (const InvalidReason reason = FirstExcludedInBf16(c, kBf16Exclusions)) return reason;
    if (const InvalidReason reason = FirstExcluded(c, kExclusions)) return reason;
    if (c.strided && (c.projected || c.mma_kv_dtype != 0 || c.mma_bulk_copy)) {
      return Excluded("strided",
                      c.projected           ? "a projection"
                      : c.mma_kv_dtype != 0 ? ToggleId(&Config::mma_kv_dtype)
                                            : ToggleId(&Config::mma_bulk_copy),
                      "it reads tensors of its own without gaps");
    }
    if (!c.projected) return {};
    if (c.dtype != Dtype::kFp16) {
      return Excluded(DtypeName(c.dtype), "a projection", "what projects computes in fp16 alone");
    }
    if (c.mma_kv_dtype != 0) {
      return Excluded(&Config::mma_kv_dtype, "a projection",
                      "its K and V are fp16, which nothing quantises");
    }
    if (c.mma_bulk_copy) {
      return Excluded(&Config::mma_bulk_copy, "a projection",
                      "only tensors of their own are copied so");
    }
    return {};
  }
  static constexpr KvStorage KvStorageOf(const Config& c) {
    const MmaShape s = MmaShapeOf(c);
    if (!Is8Bit(s)) return {};
    return {.quantised = true,
            .scheme = {.format = s.kv == MmaKv::kE4m3   ? KvFormat::kE4m3
                                 : s.kv == MmaKv::kE5m2 ? KvFormat::kE5m2
                                                        : KvFormat::kUint8,
                       .scope = s.kv_block_scale ? ScaleScope::kBlock : ScaleScope::kHead,
                       .block_keys = s.tile_n}};
  }
  static constexpr ExpMethod ExpMethodOf(const Config& c) { return MmaShapeOf(c).exp; }
  static constexpr int MinArch(const Config& c) {
    return c.mma_dependent_launch || c.mma_bulk_copy || c.fuse_projection == 2 ? 90 : 0;
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_MMA_FAMILY_H_
