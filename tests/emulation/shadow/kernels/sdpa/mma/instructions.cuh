// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/mma/instructions.cuh on the CPU.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {

inline uint32_t MmaSharedAddress(const void* smem) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(smem));
}

// Half `i` of a register.
inline float HalfOf(uint32_t pair, int i) {
  __half_raw raw;
  raw.x = static_cast<unsigned short>(i == 0 ? pair & 0xffff : pair >> 16);
  return __half2float(__half(raw));
}

// Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16". Sums in FP64, rounded once.
template <bool kBf16>
void Mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(!kBf16, "bf16 does not run here");
  struct Operands {
    uint32_t a[4];
    uint32_t b[2];
  };
  const auto all = emulation::Exchange(Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int lane = emulation::current->lane;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8;
    const int column = lane % 4 * 2 + i % 2;
    double sum = c[i];
    for (int k = 0; k < 16; ++k) {
      const Operands& of_a = all[static_cast<size_t>(row % 8 * 4 + k % 8 / 2)];
      const Operands& of_b = all[static_cast<size_t>(column * 4 + k % 8 / 2)];
      sum += static_cast<double>(HalfOf(of_a.a[row / 8 + k / 8 * 2], k % 2)) *
             HalfOf(of_b.b[k / 8], k % 2);
    }
    c[i] = static_cast<float>(sum);
  }
}
// fp16 accumulators do not run here.
template <bool kBf16>
void Mma(uint32_t (&c)[2], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

// Register m of a lane: the pair at row lane / 4 and column 2 * (lane % 4) of matrix m,
// or of its transpose. Lane i gives the address of row i % 8 of matrix i / 8.
inline void LdMatrix(uint32_t (&r)[4], uint32_t address, bool transposed) {
  const auto rows = emulation::Exchange(address);
  const int lane = emulation::current->lane;
  for (int m = 0; m < 4; ++m) {
    uint16_t pair[2];
    for (int j = 0; j < 2; ++j) {
      const int row = transposed ? lane % 4 * 2 + j : lane / 4;
      const int column = transposed ? lane / 4 : lane % 4 * 2 + j;
      const unsigned char* from = emulation::Smem(rows[static_cast<size_t>(m * 8 + row)], 16);
      std::memcpy(&pair[j], from + column * 2, 2);
    }
    r[m] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
  }
}
inline void LdMatrix(uint32_t (&r)[4], uint32_t address) { LdMatrix(r, address, false); }
inline void LdMatrixTransposed(uint32_t (&r)[4], uint32_t address) { LdMatrix(r, address, true); }

inline void StoreSharedPair(uint32_t address, uint32_t pair) {
  std::memcpy(emulation::Smem(address, 4), &pair, 4);
}
inline uint32_t LoadSharedHalf(uint32_t address) {
  uint16_t bits;
  std::memcpy(&bits, emulation::Smem(address, 2), 2);
  return bits;
}

}  // namespace warpledger::sdpa
