// SPDX-License-Identifier: Apache-2.0
// What a configuration means for the CTAs of its kernel, as every family can say it.

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_GEOMETRY_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_GEOMETRY_H_

namespace warpledger::sdpa {

struct Geometry {
  int tile_m = 0;      // query rows per CTA
  int tile_n = 0;      // keys per step of the K/V loop
  int stages = 0;      // K/V tiles resident in shared memory
  int threads = 0;     // per CTA
  int smem_bytes = 0;  // of dynamic shared memory

  friend constexpr bool operator==(const Geometry&, const Geometry&) = default;
};

// What no CTA of any family may exceed: that of sm_90 (CUDA C++ Programming Guide, technical
// specifications). A GPU that has less refuses the launch.
inline constexpr int kMaxCtaSmemBytes = 227 * 1024;

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_GEOMETRY_H_
