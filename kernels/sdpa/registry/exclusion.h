// SPDX-License-Identifier: Apache-2.0
// Why a configuration can't exist, as a family says it of its own (family.h in each) and
// rules/rules.h of all.
//
//   inline constexpr Exclusion kExclusions[] = {{&Config::a, 1, &Config::b, 1, kAnyLevel, "why"}};
//   if (const InvalidReason reason = FirstExcluded(config, kExclusions)) return reason;

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_EXCLUSION_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_EXCLUSION_H_

#include <span>
#include <string_view>

#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

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

constexpr InvalidReason Excluded(std::string_view toggle, std::string_view other,
                                 std::string_view why = {}) {
  return {InvalidReason::Kind::kExcluded, toggle, other, why};
}
constexpr InvalidReason Excluded(ToggleField toggle, std::string_view other, std::string_view why) {
  return Excluded(ToggleId(toggle), other, why);
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

constexpr InvalidReason FirstExcluded(const Config& config, std::span<const Exclusion> rules) {
  for (const Exclusion& rule : rules) {
    if (config.*rule.toggle >= rule.from && config.*rule.other >= rule.other_from &&
        config.*rule.other <= rule.other_to) {
      return Excluded(rule.toggle, ToggleId(rule.other), rule.why);
    }
  }
  return {};
}

// What a family that knows bf16 can't have in it: a toggle from level `from` to `to`.
struct Bf16Exclusion {
  ToggleField toggle;
  int from;
  int to;
  std::string_view why;
};

constexpr InvalidReason FirstExcludedInBf16(const Config& config,
                                            std::span<const Bf16Exclusion> rules) {
  if (config.dtype != Dtype::kBf16) return {};
  for (const Bf16Exclusion& rule : rules) {
    if (config.*rule.toggle >= rule.from && config.*rule.toggle <= rule.to) {
      return Excluded(rule.toggle, DtypeName(config.dtype), rule.why);
    }
  }
  return {};
}

// What a family says whose kernels don't know bf16.
constexpr InvalidReason WhyNoBf16(const Config& config) {
  if (config.dtype != Dtype::kBf16) return {};
  return Excluded(DtypeName(config.dtype), FamilyRoot(FamilyOf(config)),
                  "kernels of this family compute in fp16 alone");
}

// A head dimension as reasons name it.
constexpr std::string_view HeadDimName(int head_dim) {
  return head_dim == 64 ? "head_dim=64" : head_dim == 128 ? "head_dim=128" : "head_dim=256";
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_EXCLUSION_H_
