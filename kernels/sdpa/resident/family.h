// SPDX-License-Identifier: Apache-2.0
// What the resident family says of its configurations (rules/families.h). Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_RESIDENT_FAMILY_H_
#define WARPLEDGER_KERNELS_SDPA_RESIDENT_FAMILY_H_

#include <span>

#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/exclusion.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/resident/shape.h"
#include "kernels/sdpa/shared/exp_method.h"

namespace warpledger::sdpa {

struct ResidentFamily {
  static constexpr std::span<const Exclusion> kExclusions = {};
  static constexpr std::span<const Bf16Exclusion> kBf16Exclusions = {};

  // An instance for each mask: its prologue and code size count where it lives for 4 us.
  static constexpr bool kMaskAtRunTime = false;

  static constexpr Geometry GeometryOf(const Config& c) {
    const ResidentShape s = ResidentShapeOf(c);
    return {kRowsPerConsumer, ChunkKeys(s), 1, Threads(s), MakeSmem(s).bytes};
  }
  static constexpr InvalidReason WhyInvalid(const Config& c) {
    if (const InvalidReason reason = WhyNoBf16(c)) return reason;
    if (MakeSmem(ResidentShapeOf(c)).bytes > kMaxCtaSmemBytes) {
      return Excluded(
          &Config::kv_warpgroups, HeadDimName(c.head_dim),
          "two warpgroups' keys need more than the 227 KiB of shared memory that a CTA may have");
    }
    return {};
  }
  static constexpr KvStorage KvStorageOf(const Config&) { return {}; }
  static constexpr ExpMethod ExpMethodOf(const Config&) { return ExpMethod::kExpFolded; }
  static constexpr int MinArch(const Config&) { return 90; }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RESIDENT_FAMILY_H_
