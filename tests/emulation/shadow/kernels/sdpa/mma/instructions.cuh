// SPDX-License-Identifier: Apache-2.0
// kernels/sdpa/mma/instructions.cuh on the CPU.

#pragma once

#include <cuda_fp16.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {

inline uint32_t MmaSharedAddress(const void* smem) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(smem));
}

// Half `i` of a register.
template <bool kBf16>
float HalfOf(uint32_t pair, int i) {
  return ToFloat(kBf16 ? Dtype::kBf16 : Dtype::kFp16, static_cast<Bits16>(pair >> 16 * i));
}

// Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16". Sums in FP64.
template <bool kBf16>
std::array<double, 4> MmaSums(const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Operands {
    uint32_t a[4];
    uint32_t b[2];
  };
  const auto all = emulation::Exchange(Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int lane = emulation::current->lane;
  std::array<double, 4> sums = {};
  for (size_t i = 0; i < 4; ++i) {
    const int row = lane / 4 + static_cast<int>(i) / 2 * 8;
    const int column = lane % 4 * 2 + static_cast<int>(i) % 2;
    for (int k = 0; k < 16; ++k) {
      const Operands& of_a = all[static_cast<size_t>(row % 8 * 4 + k % 8 / 2)];
      const Operands& of_b = all[static_cast<size_t>(column * 4 + k % 8 / 2)];
      sums[i] += static_cast<double>(HalfOf<kBf16>(of_a.a[row / 8 + k / 8 * 2], k % 2)) *
                 HalfOf<kBf16>(of_b.b[k / 8], k % 2);
    }
  }
  return sums;
}
// Rounded once.
template <bool kBf16>
void Mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const std::array<double, 4> sums = MmaSums<kBf16>(a, b0, b1);
  for (size_t i = 0; i < 4; ++i) c[i] = static_cast<float>(c[i] + sums[i]);
}
template <bool kBf16>
void Mma(uint32_t (&c)[2], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const std::array<double, 4> sums = MmaSums<kBf16>(a, b0, b1);
  for (size_t row = 0; row < 2; ++row) {
    const auto half = [&](int i) {
      const double sum = HalfOf<kBf16>(c[row], i) + sums[2 * row + static_cast<size_t>(i)];
      return uint32_t{FloatToFp16(static_cast<float>(sum))};
    };
    c[row] = half(0) | half(1) << 16;
  }
}

using ptx::LdMatrix;
using ptx::LdMatrixTransposed;

inline void StoreSharedPair(uint32_t address, uint32_t pair) {
  std::memcpy(emulation::Smem(address, 4), &pair, 4);
}
inline uint32_t LoadSharedHalf(uint32_t address) {
  uint16_t bits;
  std::memcpy(&bits, emulation::Smem(address, 2), 2);
  return bits;
}
inline void StoreSharedHalf(uint32_t address, uint16_t bits) {
  std::memcpy(emulation::Smem(address, 2), &bits, 2);
}
inline void LoadSharedPairs(uint32_t& first, uint32_t& second, uint32_t address) {
  const unsigned char* from = emulation::Smem(address, 8);
  std::memcpy(&first, from, 4);
  std::memcpy(&second, from + 4, 4);
}
inline void E4m3ToHalves(uint32_t codes, uint32_t& first, uint32_t& second) {
  const auto pair = [&](int byte) {
    const auto half = [&](int i) {
      return uint32_t{FloatToFp16(Fp8ToFloat(kE4m3, static_cast<uint8_t>(codes >> 8 * i)))};
    };
    return half(byte) | half(byte + 1) << 16;
  };
  first = pair(0);
  second = pair(2);
}

inline void ArriveAtBarrier(uint32_t barrier) { ptx::MbarrierArrive(barrier); }
inline void ArriveOnCopies(uint32_t barrier) { ptx::CpAsyncMbarrierArrive(barrier); }
inline void WaitAtBarrier(uint32_t barrier, uint32_t parity) { ptx::MbarrierWait(barrier, parity); }

}  // namespace warpledger::sdpa
