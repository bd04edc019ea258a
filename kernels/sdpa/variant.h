// Printed names of configurations.
//
// A configuration prints as the ids of its toggles that are on, in registry
// order, joined by '+': "kv_tiling+warp_shuffle". A level other than the first
// on-level is spelled out ("cp_async_stages=3"). All off prints as the
// baseline's id. Standard library only: the instance generator, which runs
// while CMake configures, uses it too.

#ifndef WARPLEDGER_KERNELS_SDPA_VARIANT_H_
#define WARPLEDGER_KERNELS_SDPA_VARIANT_H_

#include <string>

#include "kernels/sdpa/config.h"

namespace warpledger::sdpa {

inline std::string ConfigName(const Config& config) {
  std::string name;
  for (const ToggleRow& row : kToggles) {
    const int level = config.*row.field;
    if (level == row.levels.values[0]) continue;
    if (!name.empty()) name += '+';
    name += row.id;
    if (level != row.levels.values[1]) {
      name += '=';
      name += std::to_string(level);
    }
  }
  return name.empty() ? std::string(kBaseline.id) : name;
}

// A C++ identifier and file name for the instance.
inline std::string InstanceSymbol(const Config& config) {
  std::string symbol = "sdpa_";
  for (const char c : ConfigName(config)) {
    if (c == '+') {
      symbol += "__";
    } else if (c == '=') {
      symbol += "_";
    } else {
      symbol += c;
    }
  }
  return symbol;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_VARIANT_H_
