// SPDX-License-Identifier: Apache-2.0
// Which configurations exist, and which of them a problem runs on.
//
//   static_assert(!WhyInvalid(Config{.kv_tiling = 1, .warp_shuffle = 1}));
//
// Everything here is constexpr and host-safe; nothing allocates.

#ifndef WARPLEDGER_KERNELS_SDPA_RULES_H_
#define WARPLEDGER_KERNELS_SDPA_RULES_H_

#include <string_view>

#include "kernels/sdpa/config.h"
#include "kernels/sdpa/dtype.h"
#include "kernels/sdpa/dtype_name.h"
#include "kernels/sdpa/geometry.h"
#include "kernels/sdpa/registry.h"
#include "kernels/sdpa/smem_layout.h"

namespace warpledger::sdpa {

// Why a configuration can't exist. Converts to true when there is a reason.
struct InvalidReason {
  enum class Kind { kValid, kUnknownLevel, kMissingRequirement, kExcluded };
  Kind kind = Kind::kValid;
  std::string_view toggle;
  std::string_view missing;   // or, for kExcluded, the toggle that it can't go with
  std::string_view why = {};  // for kExcluded, where it is no matter of families
  constexpr explicit operator bool() const { return kind != Kind::kValid; }
};

// Toggles that can't go together: `toggle` is refused, from level `from` on, beside
// `other` at its levels `other_from` to `other_to`.
struct Exclusion {
  ToggleField toggle;
  int from;
  ToggleField other;
  int other_from;
  int other_to;
  std::string_view why;
};
inline constexpr int kAnyLevel = 1 << 30;
inline constexpr Exclusion kExclusions[] = {
    {&Config::xor_swizzle, 1, &Config::wmma_qk, 1, kAnyLevel,
     "wmma::load_matrix_sync takes one leading dimension for a whole fragment, and a swizzled tile "
     "has none"},
    {&Config::xor_swizzle, 1, &Config::wmma_pv, 1, kAnyLevel,
     "wmma::load_matrix_sync takes one leading dimension for a whole fragment, and a swizzled tile "
     "has none"},
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
    {&Config::mma_bulk_copy, 1, &Config::mma_smem_layout, 1, 1,
     "a bulk copy without a tensor map keeps a row's chunks in order"},
    {&Config::wgmma_exp, 2, &Config::wgmma_fp8, 1, 1,
     "its probabilities are raised by a power of two, in log2 units and beyond fp16's 11 bits"},
    {&Config::wgmma_lazy_rescale, 1, &Config::wgmma_pack_heads, 1, 1,
     "rows behind a group that does not divide the tile hold what lay there, and would vote"},
    {&Config::fuse_projection, 1, &Config::mma_tile, 1, kAnyLevel,
     "a CTA projects 64 rows at a time, which its tiles of queries and keys must have"},
    {&Config::fuse_projection, 1, &Config::mma_longest_first, 1, kAnyLevel,
     "the CTAs of a head are neighbours, or they could be no cluster"},
};

// Families whose kernels know bf16.
inline constexpr Family kBf16Families = Family::kMma | Family::kWgmma;

// What they can't have in bf16: a toggle from level `from` to `to`.
struct Bf16Exclusion {
  ToggleField toggle;
  int from;
  int to;
  std::string_view why;
};
inline constexpr Bf16Exclusion kBf16Exclusions[] = {
    {&Config::mma_fp16_accumulate, 1, kAnyLevel,
     "mma.sync accumulates products of bf16 in fp32 alone"},
    {&Config::mma_exp, 3, 3, "packed exponentials are of fp16"},
    {&Config::wgmma_exp, 3, 3, "packed exponentials are of fp16"},
    {&Config::wgmma_exp, 1, 1,
     "by its polynomial a masked key keeps 2^-126, which is 0 in fp16 and not in bf16"},
    {&Config::mma_exp, 4, 5,
     "by its polynomial a masked key keeps 2^-126, which is 0 in fp16 and not in bf16"},
    {&Config::mma_kv_dtype, 1, kAnyLevel,
     "8-bit codes become fp16, for which the operands are fp16"},
};

// What no CTA of any family may exceed; a GPU that has less refuses the launch.
inline constexpr int kMaxCtaSmemBytes = kMaxWgmmaSmemBytes;

// A head dimension as reasons name it.
constexpr std::string_view HeadDimName(int head_dim) {
  return head_dim == 64 ? "head_dim=64" : head_dim == 128 ? "head_dim=128" : "head_dim=256";
}

// The one rule book on combinations; variants, kernels and tests all ask it.
constexpr InvalidReason WhyInvalid(const Config& config) {
  for (const ToggleRow& row : kToggles) {
    if (!row.levels.Contains(config.*row.field)) {
      return {InvalidReason::Kind::kUnknownLevel, row.id, ""};
    }
  }
  for (const ToggleRow& row : kToggles) {
    if (config.*row.field == row.levels.values[0]) continue;
    for (const ToggleField need : row.needs) {
      if (need != nullptr && config.*need == 0) {
        return {InvalidReason::Kind::kMissingRequirement, row.id, ToggleId(need)};
      }
    }
    for (const ToggleField other : row.excludes) {
      if (other != nullptr && config.*other != 0) {
        return {InvalidReason::Kind::kExcluded, row.id, ToggleId(other), ""};
      }
    }
    if (!row.control && !Includes(row.families, FamilyOf(config))) {
      return {InvalidReason::Kind::kExcluded, row.id, FamilyRoot(FamilyOf(config)), ""};
    }
  }
  if (config.dtype == Dtype::kBf16 && !Includes(kBf16Families, FamilyOf(config))) {
    return {InvalidReason::Kind::kExcluded, DtypeName(config.dtype), FamilyRoot(FamilyOf(config)),
            "kernels of this family compute in fp16 alone"};
  }
  for (const Bf16Exclusion& rule : kBf16Exclusions) {
    if (config.dtype == Dtype::kBf16 && config.*rule.toggle >= rule.from &&
        config.*rule.toggle <= rule.to) {
      return {InvalidReason::Kind::kExcluded, ToggleId(rule.toggle), DtypeName(config.dtype),
              rule.why};
    }
  }
  for (const Exclusion& rule : kExclusions) {
    if (config.*rule.toggle >= rule.from && config.*rule.other >= rule.other_from &&
        config.*rule.other <= rule.other_to) {
      return {InvalidReason::Kind::kExcluded, ToggleId(rule.toggle), ToggleId(rule.other),
              rule.why};
    }
  }
  if (config.projected && config.dtype != Dtype::kFp16) {
    return {InvalidReason::Kind::kExcluded, DtypeName(config.dtype), "a projection",
            "what projects computes in fp16 alone"};
  }
  if (config.projected && config.mma_kv_dtype != 0) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::mma_kv_dtype), "a projection",
            "its K and V are fp16, which nothing quantises"};
  }
  if (config.projected && config.mma_bulk_copy) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::mma_bulk_copy), "a projection",
            "only tensors of their own are copied so"};
  }
  // A configuration alone is of no head dimension yet.
  if (config.wgmma_fp8 && config.mask != Mask::kAtRunTime && config.head_dim != 128) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_fp8), "another head_dim",
            "a row of its tiles is the 128 bytes of a swizzled row"};
  }
  if (config.wgmma_tile != 0 && config.wgmma_tile != 3 && config.consumer_warpgroups == 0) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_tile), "one warpgroup of rows",
            "it takes the tile's own keys, or 64 (level 3)"};
  }
  if (config.wgmma_tile >= 2 && config.consumer_warpgroups != 0 && config.head_dim == 256) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_tile), "head_dim=256",
            "two stages of more than 80 keys don't fit into shared memory beside Q, and 64 keys "
            "are level 1"};
  }
  if (config.kv_ring_stages > 1 && config.kv_ring_stages >= WgmmaTileFor(config).stages) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::kv_ring_stages),
            HeadDimName(config.head_dim), "the tile's own ring, level 1, is no deeper"};
  }
  if (config.wgmma_more_registers && WgmmaTileFor(config).consumers != 2) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_more_registers),
            HeadDimName(config.head_dim),
            "beside three warpgroups of 160 registers the producer has none to give"};
  }
  if (config.wgmma_equal_registers && (config.head_dim != 64 || config.wgmma_tile != 1)) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_equal_registers),
            HeadDimName(config.head_dim),
            "only two warpgroups and 128 keys of head_dim 64 do with an equal share"};
  }
  if (config.wgmma_late_wait && config.wgmma_pack_heads &&
      kWgmmaExpMethods[config.wgmma_exp] == ExpMethod::kExpMixed) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_late_wait),
            ToggleId(&Config::wgmma_pack_heads),
            "rows behind a group that does not divide the tile hold what lay there, beyond what "
            "the polynomial takes, and a sum below 0 traps"};
  }
  if (FamilyOf(config) == Family::kWgmma) {
    const WgmmaShape shape = ShapeOf(config);
    if (config.wgmma_p_smem) {
      Config in_registers = config;
      in_registers.wgmma_p_smem = 0;
      if (shape.stages < ShapeOf(in_registers).stages) {
        return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_p_smem),
                config.wgmma_tile != 0 ? ToggleId(&Config::wgmma_tile)
                                       : ToggleId(&Config::kv_ring_stages),
                "P's place beside Q leaves room for fewer stages than are asked for"};
      }
      if (config.head_dim == 256 && config.wgmma_tile != 0) {
        return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_tile),
                HeadDimName(config.head_dim), "beside P every tile has 64 keys"};
      }
    }
    if (config.wgmma_cluster_join && !JoinFitsInRing(shape)) {
      return {InvalidReason::Kind::kExcluded, ToggleId(&Config::wgmma_cluster_join),
              HeadDimName(config.head_dim),
              "the tile's rows of O don't fit into the place of K and V, where they are left"};
    }
  }
  if (FamilyOf(config) == Family::kResident && SmemBytes(config) > kMaxCtaSmemBytes) {
    return {InvalidReason::Kind::kExcluded, ToggleId(&Config::kv_warpgroups),
            HeadDimName(config.head_dim),
            "two warpgroups' keys need more than the 227 KiB of shared memory that a CTA may have"};
  }
  if (FamilyOf(config) == Family::kSmem && SmemBytes(config) > kMaxCtaSmemBytes) {
    // One that is on: with the tile's own rows and keys two stages fit at every head_dim.
    const ToggleField field = config.cp_async_stages > 2 ? &Config::cp_async_stages
                              : config.tile_m > 32       ? &Config::tile_m
                                                         : &Config::tile_n;
    return {InvalidReason::Kind::kExcluded, ToggleId(field), HeadDimName(config.head_dim),
            "the tiles need more than the 227 KiB of shared memory that a CTA may have"};
  }
  return {};
}

// --- What the problem fixes when an instance is compiled ---------------------

// Head dimensions that some instance is made for (Design::head_dims says which).
inline constexpr int kHeadDims[] = {64, 128, 256};
inline constexpr int kDefaultHeadDim = 64;  // which every design is compiled for

// What of a configuration reaches its instance's machine code.
constexpr Config CompiledPart(Config config) {
  for (const ToggleRow& row : kToggles) {
    const bool in_code = row.code_side_with != nullptr && config.*row.code_side_with != 0;
    if (row.launch_side && !in_code) config.*row.field = row.levels.values[0];
  }
  return config;
}

// The instance of `config` that a problem runs on. In the wgmma family a kernel is
// compiled per mask: its prologue and code size count where it lives for 4 us.
constexpr Config Specialise(Config config, int head_dim, bool causal, Dtype dtype = Dtype::kFp16,
                            bool projected = false) {
  config = CompiledPart(config);
  config.head_dim = head_dim;
  config.dtype = dtype;
  config.projected = projected;
  const Family family = FamilyOf(config);
  const bool at_run_time = family == Family::kSmem || family == Family::kMma;
  config.mask = at_run_time ? Mask::kAtRunTime : causal ? Mask::kCausal : Mask::kFull;
  return config;
}

// The oldest GPU architecture that has the instance's instructions, as in sm_90; 0:
// whatever the build is made for.
constexpr int MinArch(const Config& config) {
  const Family family = FamilyOf(config);
  if (family == Family::kWgmma || family == Family::kResident) return 90;
  return config.mma_dependent_launch || config.mma_bulk_copy || config.fuse_projection == 2 ? 90
                                                                                            : 0;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RULES_H_
