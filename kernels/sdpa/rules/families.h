// SPDX-License-Identifier: Apache-2.0
// Asks the one family that a configuration is of.
//
//   static_assert(GeometryOf(Config{.kv_tiling = 1}).tile_m == 16);
//   const KvStorage storage = KvStorageOf(config);
//   if (storage.quantised) inputs = WithQuantisedKv(problem, inputs, storage);
//
// Each family answers in its family.h. No kernel includes this. Host-safe and constexpr.

#ifndef WARPLEDGER_KERNELS_SDPA_RULES_FAMILIES_H_
#define WARPLEDGER_KERNELS_SDPA_RULES_FAMILIES_H_

#include <cmath>

#include "kernels/sdpa/mma/family.h"
#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/geometry.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/resident/family.h"
#include "kernels/sdpa/shared/exp_method.h"
#include "kernels/sdpa/smem/family.h"
#include "kernels/sdpa/wgmma/family.h"

namespace warpledger::sdpa {

// ask(MmaFamily{}) and so on, whatever the configuration is of.
template <typename Ask>
constexpr auto AskFamily(const Config& config, const Ask& ask) {
  switch (FamilyOf(config)) {
    case Family::kResident:
      return ask(ResidentFamily{});
    case Family::kWgmma:
      return ask(WgmmaFamily{});
    case Family::kMma:
      return ask(MmaFamily{});
    case Family::kSmem:
      break;
  }
  return ask(SmemFamily{});
}

// ask(MmaFamily{}) and so on, of every family.
template <typename Ask>
constexpr void AskEveryFamily(const Ask& ask) {
  ask(SmemFamily{});
  ask(MmaFamily{});
  ask(WgmmaFamily{});
  ask(ResidentFamily{});
}

// What a problem fixes of a configuration when its instance is compiled.
constexpr Config Specialise(Config config, int head_dim, bool causal, Dtype dtype = Dtype::kFp16,
                            bool projected = false) {
  config.head_dim = head_dim;
  config.dtype = dtype;
  config.projected = projected;
  const bool at_run_time = AskFamily(config, [](auto family) { return family.kMaskAtRunTime; });
  config.mask = at_run_time ? Mask::kAtRunTime : causal ? Mask::kCausal : Mask::kFull;
  return CompiledPart(config);
}

constexpr Geometry GeometryOf(const Config& config) {
  return AskFamily(config, [&](auto family) { return family.GeometryOf(config); });
}

// In what form the configuration's kernel reads K and V, and so what the host prepares for it.
constexpr KvStorage KvStorageOf(const Config& config) {
  return AskFamily(config, [&](auto family) { return family.KvStorageOf(config); });
}

// The oldest GPU architecture that has the instance's instructions, as in sm_90; 0:
// whatever the build is made for.
constexpr int MinArch(const Config& config) {
  return AskFamily(config, [&](auto family) { return family.MinArch(config); });
}

// What the log-sum-exp of `seq_kv` keys may be off, absolutely, beyond the rounding of fp32,
// because the probabilities that are summed were 16-bit numbers before, or their arguments.
inline double LseAllowance(const Config& config, int seq_kv) {
  const ExpMethod method =
      AskFamily(config, [&](auto family) { return family.ExpMethodOf(config); });
  // 2^-9.9 relative (PTX ISA, ex2.approx.f16x2), and what rounding arguments x to fp16 adds, 2^-11
  // of |x|: weighted by the probabilities, |x| is at most their entropy, log2 of the keys.
  if (method == ExpMethod::kExpHalfPairs) {
    return 1.05e-3 + std::ldexp(std::log(static_cast<double>(seq_kv)), -11);
  }
  // Half a unit of fp16's last place, of each.
  if (config.softmax_in_registers == 1) return 1.0 / (1 << 12);
  return 0;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_RULES_FAMILIES_H_
