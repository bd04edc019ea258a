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
//   library_d256-20261124T132722Z
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
    {"pipelined", 64, {2.4505, 0.41215, 1.9181, 0, 0, 0, 1.0655, 0.015301, 0.045679, 0.24}},
    {"pipelined_two_warpgroups", 64, {3.1595, 0.34558, 1.431, 0, 0, 0, 0.97424, 0, 0.0082617, 0.24}},
    {"resident", 64, {1.363, 0, 0.50515, 0, 0, 0, 1.1036, 0.10818, 1.5748, 0.24}},
    {"resident_two_warpgroups", 64, {0, 0.56202, 1.2283, 0, 0, 0, 1.4672, 0, 2.456, 0.24}},
    {"split_mma", 64, {1.1291, 0.94273, 0.89425, 3.4775, 0, 3.0333, 0.6472, 0.064223, 0.28475, 0.24}},
    {"split_wgmma", 64, {1.483, 0, 1.3639, 1.3054, 2.8783, 0.50599, 0.39295, 0.105, 0.24702, 0.24}},
    {"pipelined", 128, {3.0813, 0, 1.5266, 0, 0, 0, 1.2119, 0.065652, 0.1672, 0.24}},
    {"pipelined_e4m3", 128, {3.0813, 0, 1.5266, 0, 0, 0, 1.1364, 0.10637, 0.1672, 0.24}},
    {"pipelined_pairs", 128, {3.8047, 0, 1.5959, 0, 0, 0, 1.2382, 0.040799, 0.11258, 0.24}},
    {"pipelined_short", 128, {2.4635, 0.20456, 1.3254, 0, 0, 0, 0.67236, 0.027759, 0.055399, 0.24}},
    {"pipelined_short_pairs", 128, {3.3907, 0.057216, 1.3222, 0, 0, 0, 0.6867, 0, 0.038839, 0.24}},
    {"split_mma", 128, {0.48852, 0.53493, 2.4596, 3.4071, 0, 4.3478, 0.85245, 0.060963, 0.18263, 0.24}},
    {"split_wgmma", 128, {0.10337, 0.32466, 2.9834, 1.3345, 1.319, 0.33275, 0.51522, 0.043142, 0.10962, 0.24}},
    {"pipelined", 256, {2.686, 0.61676, 2.0154, 0, 0, 0, 1.0728, 0.031066, 0.28533, 0.24}},
    {"pipelined_pairs", 256, {20.518, 0.12599, 0, 0, 0, 0, 1.326, 0, 0, 0.24}},
    {"split_wgmma", 256, {0.029666, 1.2318, 3.8301, 2.1337, 11.674, 0, 0.65234, 0, 0.38241, 0.24}},
};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
