// SPDX-License-Identifier: Apache-2.0
// The declared comparisons of levels (claims.def): what a reader would compare.
//
// A claim is a technique in one kernel family, at one level against another. A toggle with one
// on-level has one, on over off, and needs no row there.
//
//   if (IsDeclared(row, from, to)) …

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_

#include <string_view>

#include "kernels/sdpa/registry/registry.h"

namespace warpledger::sdpa {

struct LevelClaim {
  ToggleField toggle;
  std::string_view level;
  std::string_view over;
  double low;  // of the ratio that was foreseen; 0: of none
  double high;
};

inline constexpr LevelClaim kLevelClaims[] = {
#define WARPLEDGER_CLAIM(toggle_, level_, over_, low_, high_) \
  {&Config::toggle_, #level_, #over_, low_, high_},
#include "kernels/sdpa/registry/claims.def"
#undef WARPLEDGER_CLAIM
};

// Null where nobody declared the comparison, or it is a toggle's only one.
constexpr const LevelClaim* FindLevelClaim(const ToggleRow& row, int over, int level) {
  for (const LevelClaim& claim : kLevelClaims) {
    if (claim.toggle == row.field && claim.level == row.levels.NameOf(level) &&
        claim.over == row.levels.NameOf(over)) {
      return &claim;
    }
  }
  return nullptr;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_CLAIMS_H_
