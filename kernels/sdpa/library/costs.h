// SPDX-License-Identifier: Apache-2.0
// How long each of the library's kernels should take. Host-safe.
//
// A kernel's time is a sum of terms that the problem and the launch fix: a call, rounds of CTAs,
// what joining split keys takes, what nothing hides of Q, K, V and O, and about the larger of two:
// what the tensor cores' work takes, which is the longest chain of key tiles on an SM and the work
// of all SMs, or what DRAM takes for Q, K, V and O. Where the two are near each other, it is more
// (UsOfBoth). What each term costs is fitted on records by fit_costs.py, which writes
// fitted_costs.h.
//
//   const double us = ExpectedUs(kLibraryKernels[0], {1, 8, 8, 512, 512, 64, false}, {132});

#ifndef WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_
#define WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_

#include <array>
#include <span>
#include <string_view>

#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

inline constexpr int kCostTerms = 20;
using CostTerms = std::array<double, kCostTerms>;

// What each entry of CostTerms counts, as fit_costs.py prints it:
//   call, causal call   1 each
//   rounds, waves       CTAs that an SM takes, and a slot for a CTA
//   short rounds        rounds over the tiles of keys of the longest CTA: few tiles hide less
//   first tiles         tiles of keys of the longest CTA, up to three, in which pipelines fill
//   combine             1 where split keys are joined
//   join trips          how often the CTA that joins waits for loads, where the last one does
//   joined parts        the root of a tile's rows times its splits, as loads of parts overlap
//   combined MB         O in FP32, where split keys are joined
//   open Q O, open K V  MB of each; a part of their way nothing hides
//   root MB             of all four: how long DRAM takes until it has its rate
//   tail                how much longer the longest chain is than work, where slots take turns
//   chain               the longest chain of tiles of keys on a slot; half a tile counts half
//                       where a kernel begins with one
//   shared chain        the same, times the CTAs that share an SM meanwhile
//   work, causal work   all tiles of keys over all slots
//   starts              waves again: what of a CTA's start and end DRAM goes on beside
//   MB                  Q, K, V and O
inline constexpr const char* kCostTermNames[kCostTerms] = {
    "call",         "causal call", "rounds",      "waves",        "short rounds",
    "first tiles",  "combine",     "join trips",  "joined parts", "combined MB",
    "open Q O",     "open K V",    "root MB",     "tail",         "chain",
    "shared chain", "work",        "causal work", "starts",       "MB"};
// From the first of tiles on they are the tiles' work; the last one is DRAM's.
inline constexpr int kFirstTileTerm = 14;
inline constexpr int kDramTerm = 19;
static_assert(std::string_view(kCostTermNames[kFirstTileTerm]) == "chain" &&
              std::string_view(kCostTermNames[kDramTerm]) == "MB");

// What costs know of the GPU.
struct Gpu {
  int sms = 0;
  int dram_bus_bits = 6016;    // of an H200; an H100 has 5120
  bool has_wgmma = true;       // compute capability 9.0
  int smem_bytes = 227 << 10;  // of shared memory that a CTA may have; an SM has 1 KB more
  std::string_view only = {};  // the name of the one kernel that may be taken; empty: any
};

// The kernels for it.
std::span<const LibraryKernel> KernelsFor(const Gpu& gpu);

// Whether the kernel takes the problem at all: its head_dim and dtype, and what a launch holds.
bool Takes(const LibraryKernel& kernel, const Problem& problem);

// CTAs of a kernel that takes the problem that an SM holds at once, or 1 where a cluster needs two.
int CtasPerSm(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// The terms of a kernel that takes the problem.
CostTerms CostTermsOf(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// A form without costs of its own: O of E4M3 by plain stores, faster wherever O is contiguous.
constexpr bool HasCostsOfForm(const LibraryKernel& kernel) {
  return !kernel.form_of.empty() && TakesE4m3(kernel);
}

// Whose fitted costs a kernel's are, of its head_dim. No record has packed sequences: theirs
// costs what it does with one length for all, and a launch that lists their blocks. Kernels of E4M3
// have those of the one that writes it, which have records at each head_dim. Scales per block are
// left out: with ping-pong scheduling they cost 2% to 3% under a full mask and 8% to 11% under a
// causal one (hopper_fp8-20261123T083422Z). In E4M3 scopes, O's type and strides say which kernel
// does a problem, so that these costs choose nothing; they are only told.
constexpr std::string_view CostsOf(const LibraryKernel& kernel) {
  if (TakesE4m3(kernel)) return "pipelined_e4m3_output";
  return kernel.config.varlen ? "pipelined" : kernel.name;
}

// Whether it is faster in its ClusterForm. The costs don't know that form: where it is taken they
// are too high by what it saves.
bool TakesClusterForm(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// By the costs that it shares with others, if it does (CostsOf).
double UsByCosts(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// Microseconds a call, back to back, by the fitted costs.
double ExpectedUs(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

// For kMmaKernels, of which no record has times on their GPUs: what their CTAs take, about, in
// units of 16 keys that a tensor core multiplies with 16 of a warp's 32 rows, on the SM that ends
// last.
double MmaSteps(const LibraryKernel& kernel, const Problem& problem, const Gpu& gpu);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_LIBRARY_COSTS_H_
