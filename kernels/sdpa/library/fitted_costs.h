// SPDX-License-Identifier: Apache-2.0
// Written by fit_costs.py; edit nothing here. Of these records:
//   alone_fp8_d128-20261127T101703Z
//   hopper_fp8-20261123T083422Z
//   library_d128-20261124T132446Z
//   library_d256-20261124T132722Z
//   library_d64-20261124T132249Z
//   library_d64-20261124T132924Z

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_

#include <string_view>

#include "kernels/sdpa/library/costs.h"

namespace warpledger::sdpa {

struct FittedCosts {
  std::string_view name;
  int head_dim;
  CostTerms us;  // microseconds a unit of each of kCostTermNames
};

// clang-format off
inline constexpr FittedCosts kFittedCosts[] = {
    {"pipelined", 64, {1.8658, 0.35315, 2.1722, 1.1788, 0.046564, 0.032125, 0, 0, 0}},
    {"pipelined_two_warpgroups", 64, {2.3494, 0.1873, 1.5395, 1.0567, 0.0082156, 0.03202, 0, 0, 0}},
    {"resident", 64, {1.2193, 0.051173, 0.56759, 1.1413, 1.3842, 0.083281, 0, 0, 0}},
    {"resident_two_warpgroups", 64, {0, 0.052857, 1.5756, 1.4902, 1.8761, 0.10283, 0, 0, 0}},
    {"split_mma", 64, {1.4337, 0.53258, 0.87551, 0.5122, 0.41704, 0.097138, 2.7239, 0, 2.5662}},
    {"split_wgmma", 64, {1.8705, 0.23541, 1.0915, 0.31365, 0.04297, 0.072624, 1.8822, 6.6915, 0.14846}},
    {"pipelined", 128, {2.7349, 1.1501, 1.4505, 1.293, 0.12828, 0.066116, 0, 0, 0}},
    {"pipelined_e4m3", 128, {2.7349, 1.1501, 1.4505, 1.2076, 0.12828, 0.066116, 0, 0, 0}},
    {"split_mma", 128, {0.66757, 0.67319, 2.5903, 0.68327, 0.3176, 0.088418, 1.6669, 0, 9.7006}},
    {"split_wgmma", 128, {0.32979, 0.4197, 3.0416, 0.16921, 0.43871, 0.097754, 1.765, 11.008, 0}},
    {"pipelined", 256, {2.4078, 0.75854, 2.2031, 1.0801, 0.20316, 0.062574, 0, 0, 0}},
    {"split_wgmma", 256, {0.48056, 1.5945, 3.7033, 0.33905, 0.64975, 0.10668, 1.8198, 11.524, 0}},
};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
