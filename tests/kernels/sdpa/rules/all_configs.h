// SPDX-License-Identifier: Apache-2.0
// Configurations for tests whose claims hold for each that the registry's levels
// span. Those are more than can be walked, so these are a fixed random sample.

#pragma once

#include <set>
#include <vector>

#include "kernels/common/random.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/rules/rules.h"

namespace warpledger::sdpa {

// The configurations without repeats, in order.
inline std::vector<Config> Distinct(const std::vector<Config>& configs) {
  std::set<std::vector<int>> seen;
  std::vector<Config> distinct;
  for (const Config& config : configs) {
    std::vector<int> levels;
    for (const ToggleRow& row : kToggles) levels.push_back(config.*row.field);
    if (seen.insert(levels).second) distinct.push_back(config);
  }
  return distinct;
}

// Legal and illegal ones; the share of toggles that are on differs among them.
inline std::vector<Config> AllConfigs() {
  SplitMix64 random(2026);
  std::vector<Config> configs = {Config{}};
  for (int i = 0; i < 60000; ++i) {
    Config config;
    const double share = random.Uniform();
    for (const ToggleRow& row : kToggles) {
      if (random.Uniform() >= share) continue;
      config.*row.field = row.levels.values[random.Below(row.levels.count)];
    }
    configs.push_back(config);
  }
  return Distinct(configs);
}

// The same with toggles taken off until the rules allow the rest.
inline std::vector<Config> LegalConfigs() {
  std::vector<Config> configs = AllConfigs();
  for (Config& config : configs) {
    while (const InvalidReason reason = WhyInvalid(config)) {
      for (const ToggleRow& row : kToggles) {
        if (row.id == reason.toggle) config.*row.field = 0;
      }
    }
  }
  return Distinct(configs);
}

// Every technique on, no control: the ladder's last step.
inline Config LastStep() {
  Config config;
  for (const ToggleRow& row : kToggles) {
    if (row.control || !row.in_ladder || !Includes(row.families, Family::kSmem)) continue;
    config.*row.field = row.levels.values[1];
  }
  return config;
}

}  // namespace warpledger::sdpa
