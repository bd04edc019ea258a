// The kernel's configuration as a value, derived from the registry
// (toggles.def), and the rules on which configurations exist.
//
// Contract: `Config` is a structural type, the one template parameter of the
// SDPA kernels, and never changed by a kernel: what is recorded is what ran.
// Everything here is constexpr and host-safe; nothing allocates.
//
//   constexpr Config kConfig = {.kv_tiling = 1, .warp_shuffle = 1};
//   static_assert(!WhyInvalid(kConfig));
//   static_assert(TileM(kConfig) == 16);

#ifndef WARPLEDGER_KERNELS_SDPA_CONFIG_H_
#define WARPLEDGER_KERNELS_SDPA_CONFIG_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "kernels/sdpa/dtype.h"
#include "kernels/sdpa/kv_scheme.h"
#include "kernels/sdpa/mma/shape.h"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/tile_layout.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// Which keys an instance masks: what the launch says, or what it was compiled for.
enum class Mask { kAtRunTime, kFull, kCausal };

// One int per toggle: its level; 0 is off. Then what the problem fixes when an
// instance is compiled, which is no toggle: see Specialise.
struct Config {
#define WARPLEDGER_TOGGLE(id, ...) int id = 0;
#include "kernels/sdpa/toggles.def"
#undef WARPLEDGER_TOGGLE
  int head_dim = 64;  // kDefaultHeadDim
  Mask mask = Mask::kAtRunTime;
  Dtype dtype = Dtype::kFp16;
  bool projected = false;  // Q, K and V come from x, as a product's rows or in the kernel

  friend constexpr bool operator==(const Config&, const Config&) = default;
};

using ToggleField = int Config::*;

// A kernel. A configuration is of one family; a toggle may belong to several.
enum class Family : unsigned {
  kSmem = 1,      // simt and wmma: S and P pass through shared memory
  kWgmma = 2,     // Hopper: wgmma, copy engine, warp specialisation
  kResident = 4,  // Hopper, small problems: no producer, K/V divided between parts
  kMma = 8,       // mma.sync and ldmatrix: S, P and O in registers
};
constexpr Family operator|(Family a, Family b) {
  return static_cast<Family>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool Includes(Family families, Family family) {
  return (static_cast<unsigned>(families) & static_cast<unsigned>(family)) != 0;
}

// What a toggle must do to the machine code, compared with the same
// configuration without it.
enum class EvidenceChange {
  kNone,            // nothing: a control
  kAppears,         // no match when off, at least one when on
  kGrows,           // more matches when on
  kShrinks,         // fewer matches when on, perhaps none
  kVanishes,        // at least one match when off, none when on
  kDiffers,         // another number of matches
  kShrinksInLoops,  // fewer matches inside loops when on
};

struct Evidence {
  EvidenceChange change = EvidenceChange::kNone;
  std::string_view ptx;   // ECMAScript regex over PTX lines; empty: not checked
  std::string_view sass;  // regex over SASS opcodes; empty: only that the code differs
  // Regex over the lines that say what one call launches and how (calls.jsonl): more
  // match with the toggle than without, or some without and none with it.
  std::string_view launched = {};
  bool launched_vanishes = false;
};

// The effect foreseen before the first run: a range of time(off) / time(on).
struct Prediction {
  std::string_view shape;
  double low = 0;
  double high = 0;
  std::string_view why;
};

// What others reported. Zero means that no figure was given.
struct Prior {
  std::string_view text;
  double p50_us = 0;  // on the GPU that `text` names
  double ratio = 0;   // time(before) / time(after)
};

// What the claim, if it is true, does to a hardware counter.
struct CounterClaim {
  std::string_view counter = {};  // an id of reports/counters.cc; empty: it speaks of none
  bool rises = false;             // else it falls
};

inline constexpr std::size_t kMaxLevels = 8;
inline constexpr std::size_t kMaxNeeds = 4;

struct LevelList {
  std::array<int, kMaxLevels> values{};
  std::size_t count = 0;

  template <typename... Ints>
  constexpr LevelList(Ints... ints)  // NOLINT: written as {0, 2, 3} in rows
      : values{ints...}, count(sizeof...(ints)) {}
  constexpr bool Contains(int level) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] == level) return true;
    }
    return false;
  }
};

struct ToggleRow {
  std::string_view id;
  ToggleField field = nullptr;
  Family families = Family::kSmem;
  std::string_view label;
  LevelList levels = {0, 1};                      // first = off
  std::array<ToggleField, kMaxNeeds> needs{};     // each must be on
  std::array<ToggleField, kMaxNeeds> excludes{};  // each must be off
  bool control = false;                           // planted, no technique
  bool in_ladder = true;                          // false: not a step of a cumulative design
  // Says which kernels are launched, or how, and reaches no instance's machine code,
  // unless the toggle `code_side_with` is on.
  bool launch_side = false;
  ToggleField code_side_with = nullptr;
  bool may_break = false;            // known to miss the accuracy rule on some inputs,
  ToggleField exact_with = nullptr;  // unless this toggle is on
  std::string_view claim;            // mechanism, one sentence
  Prediction predicted;
  double gate = 1.10;  // time ratio needed to adopt
  Evidence evidence;
  CounterClaim counter_claim = {};
  // The microbenchmark that isolates it, by the name of a case: with the technique
  // in `micro`, without it in `micro_off`, whose value counts `micro_off_factor`
  // units of the other's. Without `micro_off` the case shows the mechanism's cost
  // alone; empty: no microbenchmark isolates it.
  std::string_view micro;
  std::string_view micro_off = {};
  double micro_off_factor = 1;
  Prior prior;
  // Why the families that it does not name can't have it, or what they have in its place; empty
  // where it names all.
  std::string_view elsewhere = {};
  std::string_view lesson = {};  // what the measurements taught, with no figure in it; may be empty
};

inline constexpr ToggleRow kToggles[] = {
#define WARPLEDGER_TOGGLE(id_, ...) ToggleRow{.id = #id_, .field = &Config::id_, __VA_ARGS__},
#include "kernels/sdpa/toggles.def"
#undef WARPLEDGER_TOGGLE
};

// The configuration with every toggle off, which the ladder starts from.
struct BaselineRow {
  std::string_view id;
  std::string_view label;
  std::string_view claim;
  Prior prior;
};
inline constexpr BaselineRow kBaseline = {
    .id = "minimal_scalar",
    .label = "Minimal scalar, one CTA per query row",
    .claim =
        "The simplest correct kernel: one CTA per query row, K/V read from global memory "
        "element by element, one thread reduces.",
    .prior = {.text = "L4 notes: 2870 us, their first correct kernel", .p50_us = 2870},
};

// Why a configuration can't exist. Converts to true when there is a reason.
struct InvalidReason {
  enum class Kind { kValid, kUnknownLevel, kMissingRequirement, kExcluded };
  Kind kind = Kind::kValid;
  std::string_view toggle;
  std::string_view missing;   // or, for kExcluded, the toggle that it can't go with
  std::string_view why = {};  // for kExcluded, where it is no matter of families
  constexpr explicit operator bool() const { return kind != Kind::kValid; }
};

constexpr std::string_view ToggleId(ToggleField field) {
  for (const ToggleRow& row : kToggles) {
    if (row.field == field) return row.id;
  }
  return "";
}

// Whether a toggle is on that trades the accuracy rule away: such a configuration is
// measured, and its verdicts are BROKEN wherever it fails.
constexpr bool MayBreak(const Config& config) {
  for (const ToggleRow& row : kToggles) {
    const bool exact = row.exact_with != nullptr && config.*row.exact_with != 0;
    if (row.may_break && config.*row.field != 0 && !exact) return true;
  }
  return false;
}

// What the log-sum-exp may be off, absolutely, beyond the rounding of fp32, because the
// probabilities that are summed were 16-bit numbers before.
constexpr double LseAllowance(const Config& config) {
  constexpr int kHalfPairs = static_cast<int>(ExpMethod::kExpHalfPairs);
  // 2^-9.9 relative: PTX ISA, ex2.approx.f16x2.
  if (config.exp_method == kHalfPairs || config.mma_exp == kHalfPairs) return 1.05e-3;
  // Half a unit of fp16's last place, of each.
  if (config.softmax_in_registers == 1) return 1.0 / (1 << 12);
  return 0;
}

constexpr Family FamilyOf(const Config& config) {
  return config.resident_kv ? Family::kResident
         : config.wgmma     ? Family::kWgmma
         : config.mma_sync  ? Family::kMma
                            : Family::kSmem;
}
// The toggle that makes a configuration one of the family; empty for kSmem.
constexpr std::string_view FamilyRoot(Family family) {
  switch (family) {
    case Family::kResident:
      return ToggleId(&Config::resident_kv);
    case Family::kWgmma:
      return ToggleId(&Config::wgmma);
    case Family::kMma:
      return ToggleId(&Config::mma_sync);
    case Family::kSmem:
      break;
  }
  return "";
}
// As records and file names spell it.
constexpr std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kResident:
      return "resident";
    case Family::kWgmma:
      return "wgmma";
    case Family::kMma:
      return "mma";
    case Family::kSmem:
      break;
  }
  return "smem";
}

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
    {&Config::mma_kv_dtype, 1, kAnyLevel,
     "8-bit codes become fp16, for which the operands are fp16"},
};

// What no CTA of any family may exceed; a GPU that has less refuses the launch.
inline constexpr int kMaxCtaSmemBytes = kMaxWgmmaSmemBytes;
constexpr int SmemBytes(const Config& config);  // smem_layout.h

// A head dimension as reasons name it.
constexpr std::string_view HeadDimName(int head_dim) {
  return head_dim == 64 ? "head_dim=64" : head_dim == 128 ? "head_dim=128" : "head_dim=256";
}

// The tile of a configuration of the wgmma family.
constexpr WgmmaTile WgmmaTileFor(const Config& c) {
  return c.wgmma_fp8 ? kFp8Tile : WgmmaTileOf(c.wgmma_tile, c.consumer_warpgroups != 0, c.head_dim);
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
  if (config.wgmma_tile >= 2 && config.head_dim == 256) {
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

// --- What a configuration means for the kernel's geometry -------------------

inline constexpr int kWarpSize = 32;

// The wgmma family's own geometry.
constexpr WgmmaShape ShapeOf(const Config& c) {
  WgmmaShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.fp8 = c.wgmma_fp8 != 0;
  s.two_level = c.wgmma_fp8_two_level != 0;
  s.block_scale = c.wgmma_fp8_block_scale != 0;
  const WgmmaTile tile = WgmmaTileFor(c);
  s.consumers = tile.consumers;
  s.tile_n = tile.tile_n;
  s.stages = c.kv_ring_stages == 0 ? 1 : c.kv_ring_stages == 1 ? tile.stages : c.kv_ring_stages;
  s.overlap = c.softmax_overlap != 0;
  s.ping_pong = c.ping_pong != 0;
  s.dynamic_schedule = c.dynamic_schedule != 0;
  s.fetch_ahead = c.dynamic_schedule == 2;
  s.tma_store = c.tma_store != 0;
  s.exp = kWgmmaExpMethods[c.wgmma_exp];
  s.lazy_rescale = c.wgmma_lazy_rescale != 0;
  s.mask_all = c.wgmma_mask_all != 0;
  s.tile_per_cta = c.wgmma_tile_per_cta != 0;
  s.tile_order = static_cast<WgmmaTileOrder>(c.wgmma_tile_order);
  s.cp_async = c.wgmma_cp_async != 0;
  s.inline_loads = c.wgmma_inline_loads != 0;
  s.equal_registers = c.wgmma_equal_registers != 0;
  s.more_registers = c.wgmma_more_registers != 0;
  s.cluster = c.kv_multicast ? c.kv_multicast : 1;
  s.p_smem = c.wgmma_p_smem != 0;
  if (s.p_smem) {
    // P's place is taken from keys at head_dim 256, where there is no other; else from the
    // ring, if it must be.
    if (s.head_dim == 256) s.tile_n = 64;
    while (MakeSmem(s).bytes > kMaxWgmmaSmemBytes && s.stages > 1) --s.stages;
  }
  return s;
}

// The mma family's.
constexpr MmaShape MmaShapeOf(const Config& c) {
  const MmaTile tile = kMmaTiles[c.mma_tile];
  MmaShape s;
  s.head_dim = c.head_dim;
  s.row_warps = tile.row_warps;
  s.rows_per_warp = tile.rows_per_warp;
  s.tile_n = tile.tile_n;
  s.key_groups = c.mma_key_groups > 0 ? c.mma_key_groups : 1;
  s.stages = c.mma_cp_async_stages;
  s.layout = static_cast<MmaLayout>(c.mma_smem_layout);
  s.q_registers = c.mma_q_registers != 0;
  s.p_registers = c.mma_p_registers != 0;
  s.v_transposed = c.mma_v_ldmatrix_trans != 0;
  s.exp = static_cast<ExpMethod>(c.mma_exp);
  s.softmax_overlap = c.mma_softmax_overlap != 0;
  s.lazy_rescale = c.mma_lazy_rescale != 0;
  s.fp16_accumulators = c.mma_fp16_accumulate;
  s.border_mask = c.mma_border_mask != 0;
  s.producer_warps = c.mma_producer_warps;
  s.longest_first = c.mma_longest_first != 0;
  s.persistent = static_cast<MmaPersistent>(c.mma_persistent);
  s.split_kv = c.mma_split_kv != 0;
  s.pack_heads = c.mma_pack_heads != 0;
  s.kv = static_cast<MmaKv>(c.mma_kv_dtype);
  s.kv_block_scale = c.mma_kv_block_scale != 0;
  s.bf16 = c.dtype == Dtype::kBf16;
  s.input = !c.projected             ? MmaInput::kGiven
            : c.fuse_projection == 0 ? MmaInput::kPacked
            : c.fuse_projection == 1 ? MmaInput::kRecomputed
                                     : MmaInput::kClusterProjected;
  s.layernorm = c.projected && c.fuse_projection != 0 && c.fuse_layernorm != 0;
  s.dependent_launch = c.mma_dependent_launch != 0;
  s.bulk_copy = c.mma_bulk_copy != 0;
  return s;
}

// The resident family's own geometry.
constexpr ResidentShape ResidentShapeOf(const Config& c) {
  ResidentShape s;
  s.head_dim = c.head_dim;
  s.causal = c.mask == Mask::kCausal;
  s.warpgroups = c.kv_warpgroups ? 2 : 1;
  s.cluster = c.cluster_split_kv > 0 ? c.cluster_split_kv : 1;
  s.fp16_exchange = c.fp16_exchange != 0;
  s.dependent_launch = c.dependent_launch != 0;
  return s;
}

// Query rows per CTA.
constexpr int TileM(const Config& c) {
  if (c.mma_sync) return TileM(MmaShapeOf(c));
  if (c.resident_kv) return kRowsPerConsumer;
  if (c.wgmma) return TileM(ShapeOf(c));
  if (c.tile_m > 0) return c.tile_m;
  return !c.kv_tiling ? 1 : c.tile_m32_warps4 ? 32 : 16;
}
// Keys per step of the K/V loop.
constexpr int TileN(const Config& c) {
  if (c.resident_kv) return ChunkKeys(ResidentShapeOf(c));
  if (c.wgmma) return ShapeOf(c).tile_n;
  if (c.mma_sync) return MmaShapeOf(c).tile_n;
  if (c.tile_n > 0) return c.tile_n;
  return c.kv_tiling ? 32 : 64;
}
// Warps that compute. With tile_m, as many as make each one's rows 16, but not less
// than the four schedulers of an SM have use for; three where four would not divide.
constexpr int Warps(const Config& c) {
  if (c.resident_kv) return Threads(ResidentShapeOf(c)) / kWarpSize;
  if (c.wgmma) return Threads(ShapeOf(c)) / kWarpSize;
  if (c.mma_sync) return Threads(MmaShapeOf(c)) / kWarpSize;
  if (c.tile_m == 48) return 3;
  if (c.tile_m > 64) return c.tile_m / 16;
  return c.tile_m32_warps4 ? 4 : 2;
}
// Threads that compute, and all of them: producer warps copy on top.
constexpr int ComputeThreads(const Config& c) { return Warps(c) * kWarpSize; }
constexpr int Threads(const Config& c) { return ComputeThreads(c) + c.producer_warps * kWarpSize; }
// How Q, K and V lie in shared memory.
constexpr TileLayout LayoutOf(const Config& c) {
  return c.xor_swizzle        ? TileLayout::kXor
         : c.smem_layout == 1 ? TileLayout::kDense
         : c.smem_layout == 2 ? TileLayout::kPanels
                              : TileLayout::kPadded;
}
// K/V tiles resident in shared memory.
constexpr int Stages(const Config& c) {
  if (c.resident_kv) return 1;
  if (c.wgmma) return ShapeOf(c).stages;
  if (c.mma_sync) return Stages(MmaShapeOf(c));
  return c.cp_async_stages > 0 ? c.cp_async_stages : 1;
}
// Keeps the instances of the smem family within the 128 registers per thread of the
// L4 notes' budget. Without a bound ptxas aims for more CTAs per SM and spills in two
// of the ladder's steps on sm_80 and sm_90. At head_dim 256 the output alone takes 64
// more, and 1024 scores of a warp in registers spill beside it. At softmax_in_registers=3
// a warp's output is 16 whole rows: at head_dim 128 64 registers, and such tiles of 64 keys
// leave room in shared memory for two CTAs per SM, whatever the registers.
constexpr int RegisterBudget(const Config& c) {
  if (c.head_dim == 256) return 256;
  if (c.softmax_in_registers != 3) return 128;
  const bool many_scores = TileM(c) * TileN(c) / Warps(c) >= 1024;  // of a warp
  if (c.head_dim == 128) return many_scores ? 256 : 168;
  return many_scores ? 168 : 128;
}
constexpr int MinCtasPerSm(const Config& c) {
  const int ctas = 65536 / (RegisterBudget(c) * Threads(c));
  return ctas > 0 ? ctas : 1;  // of many threads, which then have less than the budget
}

}  // namespace warpledger::sdpa

#include "kernels/sdpa/smem_layout.h"  // IWYU pragma: export; SmemBytes, which WhyInvalid asks

#endif  // WARPLEDGER_KERNELS_SDPA_CONFIG_H_
