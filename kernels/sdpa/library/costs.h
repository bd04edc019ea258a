// SPDX-License-Identifier: Apache-2.0
// How long each of the library's kernels should take. Host-safe.
//
// A kernel's time is a sum of terms that the problem and the launch fix: rounds of CTAs, the
// longest chain of key tiles on an SM, the work of all SMs, bytes of K and V. What each term costs
// is fitted on records of the designs `library_…` by fit_costs.py, which writes fitted_costs.h.
//
//   const double us = ExpectedUs(kLibraryKernels[0], {1, 8, 8, 512, 512, 64, false}, {132});

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_

#include <array>
#include <string_view>

#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

inline constexpr int kCostTerms = 9;
using CostTerms = std::array<double, kCostTerms>;

// What each entry of CostTerms counts, as fit_costs.py prints it.
inline constexpr const char* kCostTermNames[kCostTerms] = {"call",    "causal call", "rounds",
                                                           "chain",   "work",        "kv MB",
                                                           "combine", "combined MB", "splits MB"};

// What costs know of the GPU.
struct Gpu {
  int sms = 0;
  int dram_bus_bits = 5120;  // of an H100; an H200 has 6144
};

// Whether the kernel takes the problem at all: its head_dim and dtype, and what a launch holds.
bool Takes(const LibraryKernel& kernel, const Problem& problem);

// The terms of a kernel that takes the problem.
CostTerms CostTermsOf(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// Whose fitted costs a kernel's are. No record has packed sequences: theirs costs what it does with
// one length for all, and a launch that lists their blocks. None has the kernel of scales per block
// either: with ping-pong scheduling those cost 2% to 3% under a full mask and 8% to 11% under a
// causal one (hopper_fp8-20261123T083422Z), which is left out.
constexpr std::string_view CostsOf(const LibraryKernel& kernel) {
  if (kernel.form_of == "pipelined_short") return "pipelined";
  if (!kernel.form_of.empty()) return kernel.form_of;
  return kernel.config.varlen                  ? "pipelined"
         : kernel.config.wgmma_fp8_block_scale ? "pipelined_e4m3"
                                               : kernel.name;
}

// … and of which head_dim. Those of E4M3 are fitted at 128 alone: at 64 and 256 a tile of keys
// costs what one costs there, in proportion to its work (ExpectedUs). In E4M3 the strides alone say
// which kernel does a problem, so that these costs choose nothing; they are only told.
constexpr int CostsHeadDim(const LibraryKernel& kernel) {
  return TakesE4m3(kernel) ? 128 : kernel.head_dim;
}

// Of a kernel that is a form of another: whether it is the faster one. By records of the designs
// `fastest_…` (reports/decisions/0049-forms-of-a-kernel.md). The costs of both are the other's.
bool IsFasterForm(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// Whether it is faster in its ClusterForm. The costs don't know that form: where it is taken they
// are too high by what it saves.
bool TakesClusterForm(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// Microseconds a call, back to back, by the fitted costs.
double ExpectedUs(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_
