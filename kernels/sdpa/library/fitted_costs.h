// SPDX-License-Identifier: Apache-2.0
// Written by fit_costs.py; edit nothing here. Of these records:
//   alone_d128-20261128T061311Z-GPU-8be0f050-085f-9b7e-21da-1855ef30ef36
//   alone_d128-20261128T061311Z-GPU-f8bc9204-0d7a-9f0a-4df6-141201a3d983
//   alone_d256-20261128T062722Z-GPU-8be0f050-085f-9b7e-21da-1855ef30ef36
//   alone_d256-20261128T062722Z-GPU-f8bc9204-0d7a-9f0a-4df6-141201a3d983
//   alone_d64-20261128T062046Z-GPU-8be0f050-085f-9b7e-21da-1855ef30ef36
//   alone_d64-20261128T062046Z-GPU-f8bc9204-0d7a-9f0a-4df6-141201a3d983
//   alone_forms_fp8_d128-20261128T102244Z
//   library_d128-20261128T103207Z
//   library_d256-20261128T140643Z
//   library_d64-20261128T103427Z

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
    {"pipelined", 64, {2.4843, 0.41008, 1.8822, 0, 0, 0, 1.0678, 0.013202, 0.044223, 0.24}},
    {"pipelined_two_warpgroups", 64, {3.1652, 0.34449, 1.4232, 0, 0, 0, 0.97418, 0, 0.010159, 0.24}},
    {"resident", 64, {1.3699, 0, 0.50085, 0, 0, 0, 1.1028, 0.10672, 1.5783, 0.24}},
    {"resident_two_warpgroups", 64, {0, 0.5629, 1.2231, 0, 0, 0, 1.47, 0, 2.4607, 0.24}},
    {"split_mma", 64, {1.1143, 0.9278, 0.8949, 3.4752, 0, 3.063, 0.66815, 0.060082, 0.26183, 0.24}},
    {"split_wgmma", 64, {1.4848, 0, 1.3626, 1.3048, 2.8792, 0.50578, 0.39318, 0.10467, 0.24671, 0.24}},
    {"pipelined", 128, {3.1325, 0, 1.4648, 0, 0, 0, 1.2189, 0.057273, 0.1641, 0.24}},
    {"pipelined_e4m3", 128, {3.1325, 0, 1.4648, 0, 0, 0, 1.1443, 0.10669, 0.1641, 0.24}},
    {"pipelined_pairs", 128, {3.8997, 0, 1.4973, 0, 0, 0, 1.2501, 0.027668, 0.10692, 0.24}},
    {"pipelined_short", 128, {2.5224, 0.20949, 1.2635, 0, 0, 0, 0.67416, 0.023293, 0.055685, 0.24}},
    {"pipelined_short_pairs", 128, {3.5207, 0, 1.2074, 0, 0, 0, 0.69515, 0, 0.030847, 0.24}},
    {"split_mma", 128, {0.45162, 0.5194, 2.475, 3.3997, 0, 4.4239, 0.88031, 0.050547, 0.14932, 0.24}},
    {"split_wgmma", 128, {0.12363, 0.33587, 2.9665, 1.3278, 1.3178, 0.33354, 0.51949, 0.035199, 0.10602, 0.24}},
    {"pipelined", 256, {2.6254, 0.25361, 1.825, 0, 0, 0, 1.1073, 0.05248, 0.315, 0.24}},
    {"pipelined_pairs", 256, {3.1422, 0.39829, 1.7049, 0, 0, 0, 1.0971, 0, 0.31328, 0.24}},
    {"split_wgmma", 256, {0.8457, 0, 3.0951, 1.5657, 0.3872, 0.3177, 0.40325, 0.058654, 0.69478, 0.24}},
};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
