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
    {"pipelined", 64, {2.4746, 0.42056, 1.8886, 0, 0, 0, 1.0675, 0.010768, 0.046977, 0.24}},
    {"pipelined_two_warpgroups", 64, {3.1546, 0.34185, 1.4321, 0, 0, 0, 0.9727, 0, 0.013859, 0.24}},
    {"resident", 64, {1.3695, 0, 0.50093, 0, 0, 0, 1.1031, 0.10643, 1.5785, 0.24}},
    {"resident_two_warpgroups", 64, {0, 0.56188, 1.2201, 0, 0, 0, 1.4728, 0, 2.4634, 0.24}},
    {"split_mma", 64, {1.1052, 0.93285, 0.89795, 3.4806, 0, 3.0483, 0.66972, 0.056642, 0.26315, 0.24}},
    {"split_wgmma", 64, {1.4813, 0, 1.3655, 1.3052, 2.8813, 0.5055, 0.39414, 0.10362, 0.24514, 0.24}},
    {"pipelined", 128, {3.1291, 0, 1.4669, 0, 0, 0, 1.2188, 0.056009, 0.16627, 0.24}},
    {"pipelined_e4m3", 128, {3.1291, 0, 1.4669, 0, 0, 0, 1.142, 0.10655, 0.16627, 0.24}},
    {"pipelined_pairs", 128, {3.893, 0, 1.5018, 0, 0, 0, 1.2493, 0.026121, 0.10973, 0.24}},
    {"pipelined_short", 128, {2.5195, 0.20983, 1.2655, 0, 0, 0, 0.67401, 0.022619, 0.056936, 0.24}},
    {"pipelined_short_pairs", 128, {3.5146, 0, 1.2106, 0, 0, 0, 0.69467, 0, 0.032054, 0.24}},
    {"split_mma", 128, {0.44033, 0.52904, 2.4808, 3.4054, 0, 4.4165, 0.87869, 0.044445, 0.15573, 0.24}},
    {"split_wgmma", 128, {0.11181, 0.33832, 2.9759, 1.3297, 1.3177, 0.33327, 0.51991, 0.034106, 0.10634, 0.24}},
    {"pipelined", 256, {2.6256, 0.26078, 1.8222, 0, 0, 0, 1.1067, 0.049733, 0.31885, 0.24}},
    {"pipelined_pairs", 256, {3.1474, 0.38097, 1.7027, 0, 0, 0, 1.097, 0, 0.31534, 0.24}},
    {"split_wgmma", 256, {0.84861, 0, 3.0962, 1.5631, 0.38916, 0.31714, 0.39802, 0.057656, 0.70111, 0.24}},
};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
