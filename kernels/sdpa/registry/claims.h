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
};

// A row of claims.def.
struct LevelClaim {
  ToggleField toggle;
  std::string_view level;
  std::string_view over;
  double low = 0;  // of the ratio that was foreseen; 0: of none
  double high = 0;
  Foreseen foreseen = Foreseen::kBlind;
  std::string_view problem = {};  // empty: that of the toggle's row
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
  // Where low is 0, nobody foresaw a range.
  double low = 0;
  double high = 0;
  Foreseen foreseen = Foreseen::kBlind;
  std::string_view problem = {};
};

constexpr int LevelNamed(const ToggleRow& row, std::string_view name) {
  for (std::size_t i = 0; i < row.levels.count; ++i) {
    if (row.levels.names[i] == name) return row.levels.values[i];
  }
  return -1;
}

// What the row itself states: the first on-level over off.
constexpr Claim ClaimOfRow(const ToggleRow& row) {
  return {.row = &row,
          .over = row.levels.values[0],
          .level = row.levels.values[1],
          .low = row.predicted.low,
          .high = row.predicted.high,
          .foreseen = row.predicted.blind ? Foreseen::kBlind : Foreseen::kAfterPrototypes,
          .problem = row.predicted.shape};
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
                 .problem = each.problem.empty() ? row.predicted.shape : each.problem};
      }
      claims.push_back(claim);
    }
  }
  return claims;
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

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_
