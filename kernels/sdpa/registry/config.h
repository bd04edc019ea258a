// SPDX-License-Identifier: Apache-2.0
// The kernel's configuration as a value, one field per row of the registry
// (toggles.def).
//
// Contract: `Config` is a structural type, the one template parameter of the
// SDPA kernels, and never changed by a kernel: what is recorded is what ran.
//
//   constexpr Config kConfig = {.kv_tiling = 1, .warp_shuffle = 1};
//
// Of this folder kernels include this file alone: the registry's texts (registry.h) would cost each
// of them a second of compile time, and whoever mends a word of a text would wait for every kernel
// to be compiled again.

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_CONFIG_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_CONFIG_H_

#include "kernels/sdpa/dtype/dtype.h"

namespace warpledger::sdpa {

// Which keys an instance masks: what the launch says, or what it was compiled for.
enum class Mask { kAtRunTime, kFull, kCausal };

// One int per toggle: its level; 0 is off. Then what the problem fixes when an
// instance is compiled, which is no toggle: see Specialise.
struct Config {
#include "warpledger_toggle_fields.h"  // CMake's: toggle_fields.h.in, preprocessed
  int head_dim = 64;                   // every design is compiled for it
  Mask mask = Mask::kAtRunTime;
  Dtype dtype = Dtype::kFp16;
  bool projected = false;      // Q, K and V come from x, as a product's rows or in the kernel
  bool varlen = false;         // sequences lie one behind another, and each has a length of its own
  bool scale_strides = false;  // the launch says how far scales of 8-bit Q, K and V lie apart
  bool strided = false;        // the launch says how far batches, heads and rows lie apart

  friend constexpr bool operator==(const Config&, const Config&) = default;
};

// A kernel. A configuration is of one family; a toggle may belong to several.
enum class Family : unsigned {
  kSmem = 1,      // simt and wmma: S and P pass through shared memory
  kWgmma = 2,     // Hopper: wgmma, TMA, warp specialisation
  kResident = 4,  // Hopper, small problems: no producer, K/V divided between parts
  kMma = 8,       // mma.sync and ldmatrix: S, P and O in registers
};
constexpr Family FamilyOf(const Config& config) {
  return config.resident_kv ? Family::kResident
         : config.wgmma     ? Family::kWgmma
         : config.mma_sync  ? Family::kMma
                            : Family::kSmem;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_CONFIG_H_
