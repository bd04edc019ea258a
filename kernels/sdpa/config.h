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

#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// One int per toggle: its level; 0 is off.
struct Config {
#define WARPLEDGER_TOGGLE(id, ...) int id = 0;
#include "kernels/sdpa/toggles.def"
#undef WARPLEDGER_TOGGLE

  friend constexpr bool operator==(const Config&, const Config&) = default;
};

using ToggleField = int Config::*;

// Which kernel a toggle belongs to. A configuration is of one family.
enum class Family {
  kSmem,   // simt and wmma: S and P pass through shared memory
  kWgmma,  // Hopper: wgmma, copy engine, warp specialisation
};

// What a toggle must do to the machine code, compared with the same
// configuration without it.
enum class EvidenceChange {
  kNone,     // nothing: a control
  kAppears,  // no match when off, at least one when on
  kGrows,    // more matches when on
};

struct Evidence {
  EvidenceChange change = EvidenceChange::kNone;
  std::string_view ptx;   // ECMAScript regex over PTX lines; empty: not checked
  std::string_view sass;  // regex over SASS opcodes; empty: only that the code differs
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

inline constexpr std::size_t kMaxLevels = 5;
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
  Family family = Family::kSmem;
  std::string_view label;
  LevelList levels = {0, 1};                   // first = off
  std::array<ToggleField, kMaxNeeds> needs{};  // each must be on
  bool control = false;                        // planted, no technique
  std::string_view claim;                      // mechanism, one sentence
  Prediction predicted;
  double gate = 1.10;  // time ratio needed to adopt
  Evidence evidence;
  // The microbenchmark that isolates it, by the name of a case: with the technique
  // in `micro`, without it in `micro_off`, whose value counts `micro_off_factor`
  // units of the other's. Without `micro_off` the case shows the mechanism's cost
  // alone; empty: no microbenchmark isolates it.
  std::string_view micro;
  std::string_view micro_off = {};
  double micro_off_factor = 1;
  Prior prior;
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
  std::string_view missing;  // or, for kExcluded, the toggle that it can't go with
  constexpr explicit operator bool() const { return kind != Kind::kValid; }
};

constexpr std::string_view ToggleId(ToggleField field) {
  for (const ToggleRow& row : kToggles) {
    if (row.field == field) return row.id;
  }
  return "";
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
    if (row.family == Family::kSmem && !row.control && config.wgmma != 0) {
      return {InvalidReason::Kind::kExcluded, row.id, "wgmma"};
    }
  }
  return {};
}

constexpr Family FamilyOf(const Config& config) {
  return config.wgmma ? Family::kWgmma : Family::kSmem;
}

// --- What a configuration means for the kernel's geometry -------------------

inline constexpr int kHeadDim = 64;
inline constexpr int kWarpSize = 32;

// The wgmma family's own geometry.
constexpr WgmmaShape ShapeOf(const Config& c) {
  WgmmaShape s;
  s.head_dim = kHeadDim;
  s.consumers = c.consumer_warpgroups > 0 ? c.consumer_warpgroups : 1;
  // Three consumers have 160 registers a thread: at 128 keys the scores, the
  // probabilities and O leave too few, and ptxas spills.
  s.tile_n = s.consumers == 3 ? 112 : 128;
  s.stages = c.kv_ring_stages > 0 ? c.kv_ring_stages : 1;
  s.overlap = c.softmax_overlap != 0;
  s.ping_pong = c.ping_pong != 0;
  s.dynamic_schedule = c.dynamic_schedule != 0;
  return s;
}

// Query rows per CTA.
constexpr int TileM(const Config& c) {
  if (c.wgmma) return TileM(ShapeOf(c));
  return !c.kv_tiling ? 1 : c.tile_m32_warps4 ? 32 : 16;
}
// Keys per step of the K/V loop.
constexpr int TileN(const Config& c) {
  if (c.wgmma) return ShapeOf(c).tile_n;
  return c.kv_tiling ? 32 : 64;
}
constexpr int Threads(const Config& c) {
  if (c.wgmma) return Threads(ShapeOf(c));
  return (c.tile_m32_warps4 ? 4 : 2) * kWarpSize;
}
constexpr int Warps(const Config& c) { return Threads(c) / kWarpSize; }
// K/V tiles resident in shared memory.
constexpr int Stages(const Config& c) {
  if (c.wgmma) return ShapeOf(c).stages;
  return c.cp_async_stages > 0 ? c.cp_async_stages : 1;
}
// Keeps every instance of the smem family within the 128 registers per thread of
// the L4 notes' budget. Without a bound ptxas aims for more CTAs per SM and spills
// in two of the ladder's steps on sm_80 and sm_90.
constexpr int MinCtasPerSm(const Config& c) { return 65536 / (128 * Threads(c)); }

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_CONFIG_H_
