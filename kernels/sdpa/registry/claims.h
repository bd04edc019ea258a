// SPDX-License-Identifier: Apache-2.0
// The claims of the registry: a toggle at one level over another, and what was foreseen of it.
//
// A toggle with one on-level has one claim, on over off, which its row (toggles.def) states whole.
// The claims of others stand in claims.def. A claim of several kernel families is judged in each.
//
//   for (const Claim& claim : DeclaredClaims()) … ClaimId(claim) …  // "kv_ring_stages.three_…"

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sdpa/registry/registry.h"

namespace warpledger::sdpa {

// When a range was written down.
enum class Foreseen {
  kBlind,            // before anything of the claim had run
  kAfterPrototypes,  // prototypes had run
  kFromOtherPairs,   // each of its levels had been judged over a third, the pair itself had not
  kFromRecord,       // after it had been judged: it is the interval of a record
};
// Such a range is one of records since then.
inline constexpr std::string_view kRecordsPredictSince = "2026-11-26";

// A row of claims.def.
struct LevelClaim {
  ToggleField toggle;
  std::string_view level;
  std::string_view over;
  double low = 0;  // of the ratio that was foreseen; 0: the row states it
  double high = 0;
  Foreseen foreseen = Foreseen::kBlind;
  std::string_view problem = {};  // empty: that of the toggle's row
  // What the level is called where the row's label names another one; the first claim of a level
  // states it for all.
  std::string_view label = {};
};

inline constexpr LevelClaim kLevelClaims[] = {
#define WARPLEDGER_CLAIM(toggle_, level_, over_, ...) \
  {.toggle = &Config::toggle_, .level = #level_, .over = #over_ __VA_OPT__(, ) __VA_ARGS__},
#define WARPLEDGER_SAME_BITS(toggle_)
#include "kernels/sdpa/registry/claims.def"
#undef WARPLEDGER_SAME_BITS
#undef WARPLEDGER_CLAIM
};

// The toggles that move work or data and leave the order of every sum as it is.
inline constexpr ToggleField kSameBits[] = {
#define WARPLEDGER_CLAIM(...)
#define WARPLEDGER_SAME_BITS(toggle_) &Config::toggle_,
#include "kernels/sdpa/registry/claims.def"
#undef WARPLEDGER_SAME_BITS
#undef WARPLEDGER_CLAIM
};

constexpr bool KeepsBits(const ToggleRow& row) {
  return std::find(std::begin(kSameBits), std::end(kSameBits), row.field) != std::end(kSameBits);
}

struct Claim {
  const ToggleRow* row = nullptr;
  int over = 0;  // the level that it is judged against
  int level = 0;
  double low = 0;
  double high = 0;
  Foreseen foreseen = Foreseen::kBlind;
  std::string_view problem = {};
  // The families of tests that it is judged in, in one record and for one question (time, joules):
  // with each step of the design between levels of the toggle,
  std::string_view step_family = {};
  // and with each other pair of arms that differs by the claim. Empty: steps alone judge it.
  std::string pair_family = {};
};

// Empty: every record is held against its range.
inline std::string_view PredictsSince(const Claim& claim) {
  return claim.foreseen == Foreseen::kFromRecord ? kRecordsPredictSince : "";
}

constexpr int LevelNamed(const ToggleRow& row, std::string_view name) {
  for (std::size_t i = 0; i < row.levels.count; ++i) {
    if (row.levels.names[i] == name) return row.levels.values[i];
  }
  return -1;
}

constexpr std::string_view LabelOf(const ToggleRow& row, int level) {
  for (const LevelClaim& claim : kLevelClaims) {
    if (claim.toggle != row.field || claim.label.empty()) continue;
    if (LevelNamed(row, claim.level) == level) return claim.label;
  }
  return row.label;
}

// What the row itself states: the first on-level over off.
inline Claim ClaimOfRow(const ToggleRow& row) {
  return {.row = &row,
          .over = row.levels.values[0],
          .level = row.levels.values[1],
          .low = row.predicted.low,
          .high = row.predicted.high,
          .foreseen = row.predicted.blind ? Foreseen::kBlind : Foreseen::kAfterPrototypes,
          .problem = row.predicted.shape,
          .step_family = row.id};
}

// "wmma_pv", "kv_ring_stages.three_stages_over_two_stages".
inline std::string ClaimId(const ToggleRow& row, int over, int level) {
  std::string id(row.id);
  if (row.levels.count == 2) return id;
  return id.append(".")
      .append(row.levels.NameOf(level))
      .append("_over_")
      .append(row.levels.NameOf(over));
}

// In the registry's order, then in that of claims.def. Controls claim nothing.
inline std::vector<Claim> DeclaredClaims() {
  std::vector<Claim> claims;
  for (const ToggleRow& row : kToggles) {
    if (row.control) continue;
    if (row.levels.count == 2) claims.push_back(ClaimOfRow(row));
    for (const LevelClaim& each : kLevelClaims) {
      if (each.toggle != row.field) continue;
      Claim claim = ClaimOfRow(row);
      const int over = LevelNamed(row, each.over);
      const int level = LevelNamed(row, each.level);
      if (over != claim.over || level != claim.level) {
        claim = {.row = &row,
                 .over = over,
                 .level = level,
                 .low = each.low,
                 .high = each.high,
                 .foreseen = each.foreseen,
                 .problem = each.problem.empty() ? row.predicted.shape : each.problem,
                 .step_family = row.id};
      }
      claim.pair_family = ClaimId(row, over, level);
      claims.push_back(claim);
    }
  }
  return claims;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_
