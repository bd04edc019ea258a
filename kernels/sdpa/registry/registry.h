// SPDX-License-Identifier: Apache-2.0
// The registry (toggles.def) as a table: what each toggle claims, what was predicted
// of it, what it needs and what must show in the machine code.
//
// Everything here is constexpr and host-safe; nothing allocates.

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_REGISTRY_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_REGISTRY_H_

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "kernels/sdpa/registry/config.h"

namespace warpledger::sdpa {

using ToggleField = int Config::*;

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
  bool blind = true;  // false: prototypes had run
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
  std::string_view counter =
      {};              // an id of reports/model/derived/counters.cc; empty: it speaks of none
  bool rises = false;  // else it falls
};

inline constexpr std::size_t kMaxLevels = 8;
inline constexpr std::size_t kMaxNeeds = 4;

// What a level is, in a word: machine code and records have the value, readers the name.
struct NamedLevel {
  int value;
  std::string_view name;
};

struct LevelList {
  std::array<int, kMaxLevels> values{};
  std::array<std::string_view, kMaxLevels> names{};
  std::size_t count = 0;

  constexpr LevelList(std::initializer_list<NamedLevel> levels) {
    for (const NamedLevel& level : levels) {
      values[count] = level.value;
      names[count++] = level.name;
    }
  }
  constexpr bool Contains(int level) const { return !NameOf(level).empty(); }
  // Empty: there is no such level.
  constexpr std::string_view NameOf(int level) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] == level) return names[i];
    }
    return "";
  }
};

// A mechanism that several families have, each by toggles of its own (techniques.h).
enum class Technique {
  kOwn,  // the toggle is a technique of its own
  kTensorCores,
  kCopiesAhead,
  kSmemLayout,
  kScoresInRegisters,
  kSoftmaxOverlap,
  kPingPong,
  kWarpSpecialisation,
  kTileSchedule,
  kLazyRescale,
  kExponentials,
  kSplitKv,
  kPackedHeads,
  kDependentLaunch,
};

struct ToggleRow {
  std::string_view id;
  ToggleField field = nullptr;
  Family families = Family::kSmem;
  std::string_view label;
  Technique technique = Technique::kOwn;
  bool removes_technique = false;                 // on means without the technique
  LevelList levels = {{0, "off"}, {1, "on"}};     // first = off
  std::array<ToggleField, kMaxNeeds> needs{};     // each must be on
  std::array<ToggleField, kMaxNeeds> excludes{};  // each must be off
  bool control = false;                           // planted, no technique
  bool in_ladder = true;                          // false: not a step of a cumulative design
  // Says which kernels are launched, or how, and reaches no instance's machine code,
  // unless the toggle `code_side_with` is on.
  bool launch_side = false;
  ToggleField code_side_with = nullptr;
  // Reaches no machine code under a full mask, but where sequences are packed.
  bool causal_only = false;
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
#include "kernels/sdpa/registry/toggles.def"
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

// What of a configuration reaches its instance's machine code.
constexpr Config CompiledPart(Config config) {
  for (const ToggleRow& row : kToggles) {
    const bool in_code = row.code_side_with != nullptr && config.*row.code_side_with != 0;
    const bool nothing_to_mask = row.causal_only && config.mask == Mask::kFull && !config.varlen;
    if ((row.launch_side && !in_code) || nothing_to_mask) {
      config.*row.field = row.levels.values[0];
    }
  }
  return config;
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

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_REGISTRY_H_
