// SPDX-License-Identifier: Apache-2.0
// Matrix descriptors of wgmma (PTX ISA, "Matrix Descriptor").

#ifndef WARPLEDGER_KERNELS_COMMON_WGMMA_DESCRIPTOR_CUH_
#define WARPLEDGER_KERNELS_COMMON_WGMMA_DESCRIPTOR_CUH_

#include <cstdint>

namespace warpledger::ptx {

// Matrix descriptor of a tile in shared memory with the 128- or 64-byte swizzle, as the
// TMA writes it: rows of as many bytes, eight rows to an atom, the tile aligned to an atom.
//   leading_bytes: for a tile whose N runs along the rows (transposed B), the
//     distance between two blocks of 64 columns; else unused
// Steps along K: 32 bytes per 16 elements within a row, or 2048 bytes per 16 rows
// in the transposed case; AdvanceDescriptor takes them.
template <int kRowBytes = 128>
__device__ inline uint64_t SwizzledDescriptor(uint32_t smem, uint32_t leading_bytes = 16) {
  static_assert(kRowBytes == 128 || kRowBytes == 64);
  constexpr uint64_t kSwizzle = uint64_t{kRowBytes == 128 ? 1 : 2} << 62;
  constexpr uint64_t kAtomBytes = 8 * kRowBytes;
  const auto field = [](uint64_t bytes) { return (bytes & 0x3ffff) >> 4; };
  return field(smem) | field(leading_bytes) << 16 | field(kAtomBytes) << 32 | kSwizzle;
}
__device__ inline uint64_t AdvanceDescriptor(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

}  // namespace warpledger::ptx

#endif  // WARPLEDGER_KERNELS_COMMON_WGMMA_DESCRIPTOR_CUH_
