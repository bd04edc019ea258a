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
//   library_fifth_d128-20261128T192001Z
//   library_fifth_d256-20261128T192001Z
//   library_fifth_d64-20261128T192246Z
//   library_fourth_d128-20261128T180947Z
//   library_fourth_d256-20261128T180947Z
//   library_fourth_d64-20261128T181332Z
//   library_other_d128-20261128T153915Z
//   library_other_d256-20261128T154059Z
//   library_other_d64-20261128T153746Z
//   library_third_d128-20261128T181507Z
//   library_third_d256-20261128T181238Z
//   library_third_d64-20261128T181553Z

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
    {"pipelined", 64, {2.0502, 0.21108, 1.6865, 0.1238, 0.25035, 0, 0, 0, 0.019752, 0.12633, 0.93429, 0, 0.02638, 0.049767, 0.039575, 0.24}},
    {"pipelined_two_warpgroups", 64, {1.8917, 0, 1.2179, 0, 0.61877, 0, 0, 0, 0.02783, 0, 0.95242, 0.041626, 0.010744, 0, 0, 0.24}},
    {"resident", 64, {1.3123, 0, 0.36816, 0.061141, 0.10848, 0, 0, 0, 0.0518, 0.044589, 1.142, 0, 0.71549, 0.22006, 0.008851, 0.24}},
    {"resident_two_warpgroups", 64, {0.542, 0, 1.1682, 0.15949, 0.25087, 0, 0, 0, 0.021263, 0.68102, 0.95596, 0.016268, 0.2479, 0.12143, 0, 0.24}},
    {"split_mma", 64, {1.3719, 0.42019, 0.83242, 0, 0, 1.6343, 0.2506, 3.6193, 0, 0, 0.68263, 0, 0.25436, 0.077884, 0, 0.24}},
    {"split_wgmma", 64, {1.3924, 0.15039, 1.2509, 0, 0.15162, 1.3087, 0.016874, 3.1375, 0.0012212, 0, 0.3687, 0, 0.26402, 0.077433, 0.32492, 0.24}},
    {"pipelined", 128, {2.0958, 0, 1.3942, 0, 0.67465, 0, 0, 0, 0.023276, 0, 1.1594, 0, 0.16791, 0.085436, 0, 0.24}},
    {"pipelined_e4m3", 128, {2.0958, 0, 1.3942, 0, 0.67465, 0, 0, 0, 0.023276, 0, 1.1208, 0.011336, 0.16791, 0.085436, 0, 0.24}},
    {"pipelined_pairs", 128, {2.1247, 0, 1.3211, 0.38224, 0.89087, 0, 0, 0, 0.028858, 0, 1.2073, 0, 0.10003, 0.059169, 0.039416, 0.24}},
    {"pipelined_short", 128, {1.1327, 0.32511, 1.0831, 0.84756, 0.55138, 0, 0, 0, 0.024014, 0.0040473, 0.65643, 0, 0.047406, 0.037478, 0.0046343, 0.24}},
    {"pipelined_short_pairs", 128, {1.9726, 0.2274, 1.2904, 0.45635, 0.48898, 0, 0, 0, 0.017463, 0, 0.68325, 0, 0.023813, 0.0093381, 0, 0.24}},
    {"split_mma", 128, {0.47392, 0.37164, 2.3025, 0.10074, 0.1183, 1.2629, 0.42856, 4.5895, 0, 0, 0.8445, 0, 0.21167, 0.066469, 0, 0.24}},
    {"split_wgmma", 128, {0, 0.10053, 2.8773, 0, 0.29342, 1.2335, 0.028585, 1.7715, 0, 0, 0.40675, 0.058207, 0.21779, 0, 0.10017, 0.24}},
    {"pipelined", 256, {1.9552, 0.29619, 2.0937, 0, 0.2601, 0, 0, 0, 0.019539, 0, 1.0659, 0, 0.26985, 0.073702, 0, 0.24}},
    {"pipelined_pairs", 256, {2.325, 0.35097, 2.0746, 0.036993, 0.33129, 0, 0, 0, 0.014015, 0.11594, 0.91525, 0.020852, 0.29767, 0, 0.064871, 0.24}},
    {"split_wgmma", 256, {0.15869, 0.1506, 3.4953, 0, 0.2646, 0.7384, 0.083376, 1.1235, 0, 0, 0.59296, 0, 0.43621, 0.067729, 0.087807, 0.24}},
};
// clang-format on

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_FITTED_COSTS_H_
