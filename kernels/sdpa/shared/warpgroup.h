// SPDX-License-Identifier: Apache-2.0
// A warpgroup's share of a product, and the swizzle of shared memory. Host-safe.

#ifndef WARPLEDGER_KERNELS_SDPA_SHARED_WARPGROUP_H_
#define WARPLEDGER_KERNELS_SDPA_SHARED_WARPGROUP_H_

namespace warpledger::sdpa {

inline constexpr int kWarpgroup = 128;       // threads
inline constexpr int kRowsPerConsumer = 64;  // of wgmma's M
inline constexpr int kSwizzleBytes = 128;    // of a swizzled row
inline constexpr int kSwizzleColumns = 64;   // 16-bit elements in one

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_SHARED_WARPGROUP_H_
