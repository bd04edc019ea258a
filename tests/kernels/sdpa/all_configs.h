// Every configuration that the registry's levels span, legal or not, for tests
// whose claims hold for each of them.

#ifndef WARPLEDGER_TESTS_KERNELS_SDPA_ALL_CONFIGS_H_
#define WARPLEDGER_TESTS_KERNELS_SDPA_ALL_CONFIGS_H_

#include <cstddef>
#include <vector>

#include "kernels/sdpa/config.h"

namespace warpledger::sdpa {

inline std::vector<Config> AllConfigs() {
  std::vector<Config> configs = {Config{}};
  for (const ToggleRow& row : kToggles) {
    std::vector<Config> next;
    for (const Config& config : configs) {
      for (std::size_t i = 0; i < row.levels.count; ++i) {
        next.push_back(config);
        next.back().*row.field = row.levels.values[i];
      }
    }
    configs = next;
  }
  return configs;
}

inline std::vector<Config> LegalConfigs() {
  std::vector<Config> configs = AllConfigs();
  std::erase_if(configs, [](const Config& config) { return bool{WhyInvalid(config)}; });
  return configs;
}

// Every technique on, no control: the ladder's last step.
inline Config LastStep() {
  Config config;
  for (const ToggleRow& row : kToggles) {
    if (!row.control && row.family == Family::kSmem) config.*row.field = row.levels.values[1];
  }
  return config;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_TESTS_KERNELS_SDPA_ALL_CONFIGS_H_
