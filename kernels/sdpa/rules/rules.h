// SPDX-License-Identifier: Apache-2.0
// Which configurations exist.
//
//   static_assert(!WhyInvalid(Config{.kv_tiling = 1, .warp_shuffle = 1}));
//
// Everything here is constexpr and host-safe; nothing allocates.

#ifndef WARPLEDGER_KERNELS_SDPA_RULES_RULES_H_
#define WARPLEDGER_KERNELS_SDPA_RULES_RULES_H_

#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/exclusion.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::sdpa {

// The one rule book on combinations: what the registry's rows say, then what the family says.
// Variants, kernels and tests all ask it.
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
      if (other != nullptr && config.*other != 0) return Excluded(row.id, ToggleId(other));
    }
    if (!row.control && !Includes(row.families, FamilyOf(config))) {
      return Excluded(row.id, FamilyRoot(FamilyOf(config)));
    }
  }
  if (config.varlen && FamilyOf(config) != Family::kWgmma && !config.strided) {
    return Excluded("varlen", FamilyRoot(FamilyOf(config)), "its kernels know one length for all");
  }
  if (config.scale_strides && !config.wgmma_fp8) {
    return Excluded("scale_strides", FamilyRoot(FamilyOf(config)),
                    "16-bit operands have no scales");
  }
  if (config.strided && FamilyOf(config) != Family::kMma) {
    return Excluded("strided", FamilyRoot(FamilyOf(config)), "its tensor maps have strides");
  }
  return AskFamily(config, [&](auto family) { return family.WhyInvalid(config); });
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RULES_RULES_H_
