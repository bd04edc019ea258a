// SPDX-License-Identifier: Apache-2.0
// P V in 8 bits: P as codes in A's registers, V transposed (load/fp8_layout.h has the orders).

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_FP8_PRODUCTS_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_FP8_PRODUCTS_CUH_

#include <cmath>
#include <cstdint>

#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/wgmma/load/fp8_layout.h"
#include "kernels/sdpa/wgmma/shape.h"

namespace warpledger::sdpa {

// A descriptor further on by a compile-time step. The address field can't overflow,
// so one addition to the low word does; the high word stays a constant.
__device__ inline uint64_t Advance(uint64_t descriptor, uint32_t bytes) {
  return (descriptor & 0xffffffff00000000u) | (static_cast<uint32_t>(descriptor) + (bytes >> 4));
}

template <WgmmaShape kShape>
struct Fp8Products {
  static constexpr int kCodeRegisters = kShape.tile_n / 8;
  // Of O's columns, and a part's registers.
  static constexpr int kParts = OutputParts(kShape);
  static constexpr int kPartOutputs = kShape.head_dim / 2 / kParts;
  using Out = float[kShape.head_dim / 2];
  using Part = float[kPartOutputs];

  // Probabilities of a tile as codes, in the order of A's bytes.
  template <int kCount>
  __device__ static void Pack(const float (&probs)[kCount], uint32_t (&codes)[kCodeRegisters]) {
#pragma unroll
    for (int i = 0; i < kCodeRegisters; ++i) {
      const float* of = &probs[i / 4 * 16];
      codes[i] =
          PackE4m3(of[fp8::AccumulatorOfByte(i % 4, 0)], of[fp8::AccumulatorOfByte(i % 4, 1)],
                   of[fp8::AccumulatorOfByte(i % 4, 2)], of[fp8::AccumulatorOfByte(i % 4, 3)]);
    }
  }

  // Starts P V of 2 * kCount columns of O. With two levels from 0: tensor cores keep some 14 bits
  // of a sum of 8-bit products (DeepSeek-V3, arXiv 2412.19437, section 3.3.2), enough for a tile.
  //   v: the tile of V, transposed
  template <int kCount>
  __device__ static void Start(float (&out)[kCount], const uint32_t (&codes)[kCodeRegisters],
                               uint32_t v, int first_column = 0) {
    constexpr int kRow = TransposedRowBytes(kShape);
    const uint64_t first = ptx::SwizzledDescriptor<kRow>(v);
    ptx::WgmmaFence();
#pragma unroll
    for (int key = 0; key < kShape.tile_n; key += fp8::kKeysPerProduct) {
      const uint32_t a[4] = {codes[key / 8], codes[key / 8 + 1], codes[key / 8 + 2],
                             codes[key / 8 + 3]};
      const uint32_t at = fp8::OperandByte(key, first_column, kShape.head_dim, kRow);
      ptx::Wgmma<2 * kCount, ptx::WgmmaInputs::kE4m3>::RS(out, a, Advance(first, at),
                                                          kShape.two_level && key == 0 ? 0 : 1);
    }
    ptx::WgmmaCommit();
  }

  // --- With two levels: P V apart from O, all at once or in parts of O's columns ---
  __device__ static void StartPart(Part& fresh, const uint32_t (&codes)[kCodeRegisters], uint32_t v,
                                   int part) {
    Start(fresh, codes, v, part * 2 * kPartOutputs);
  }
  // A part's P V, which is over, joins O.
  //   carry: what O's rows before it are yet to be multiplied by
  __device__ static void Add(Out& out, const float (&carry)[2], const Part& fresh, int part) {
#pragma unroll
    for (int i = 0; i < kPartOutputs; ++i) {
      float& sum = out[part * kPartOutputs + i];
      sum = fmaf(sum, carry[i / 2 % 2], fresh[i]);
    }
  }
  // All parts from kFirst on, of which that one is in flight in `fresh`. Two are in flight at a
  // time, so that one joins O while the tensor cores work on the other.
  template <int kFirst>
  __device__ static void EndParts(Out& out, const float (&carry)[2], Part& fresh, Part& second,
                                  const uint32_t (&codes)[kCodeRegisters], uint32_t v) {
    const auto registers = [&](int part) -> Part& {
      return (part - kFirst) % 2 == 0 ? fresh : second;
    };
    StartPart(second, codes, v, kFirst + 1);
#pragma unroll
    for (int part = kFirst; part < kParts; ++part) {
      if (part < kParts - 1) {
        ptx::WgmmaWait<1>();
      } else {
        ptx::WgmmaWait<0>();
      }
      ptx::PinRegisters(registers(part));
      Add(out, carry, registers(part), part);
      if (part + 2 < kParts) StartPart(registers(part + 2), codes, v, part + 2);
    }
  }
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_FP8_PRODUCTS_CUH_
