// SPDX-License-Identifier: Apache-2.0
// kernels/common/wgmma.cuh on the CPU.

#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/wgmma_descriptor.cuh"
#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/dtype/fp8.h"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::ptx {

inline void WgmmaFence() {}
inline void WgmmaCommit() { emulation::CommitProducts(); }
template <int kPending>
void WgmmaWait() {
  emulation::WaitForProducts(kPending);
}
template <int kCount>
void PinRegisters(float (&)[kCount]) {}
inline void OrderBehind(float sum) {
  if (__any_sync(0xffffffffu, sum < 0)) emulation::Die("a sum below 0");
}
template <int kRegisters>
void IncreaseRegisters() {}
template <int kRegisters>
void DecreaseRegisters() {}

enum class WgmmaInputs { kFp16, kBf16, kE4m3 };

// Of all codes of an element's format.
template <WgmmaInputs kInputs>
const std::vector<float>& WgmmaValues() {
  static const std::vector<float> kValues = [] {
    std::vector<float> values(kInputs == WgmmaInputs::kE4m3 ? 1 << 8 : 1 << 16);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = kInputs == WgmmaInputs::kE4m3
                      ? sdpa::Fp8ToFloat(sdpa::kE4m3, static_cast<uint8_t>(i))
                      : sdpa::ToFloat(
                            kInputs == WgmmaInputs::kBf16 ? sdpa::Dtype::kBf16 : sdpa::Dtype::kFp16,
                            static_cast<sdpa::Bits16>(i));
    }
    return values;
  }();
  return kValues;
}

// A tile in shared memory as a descriptor says (PTX ISA, "Matrix Descriptor", "Strides",
// "Swizzling modes").
template <WgmmaInputs kInputs>
class WgmmaOperand {
 public:
  explicit WgmmaOperand(uint64_t descriptor) {
    const auto field = [&](int shift) {
      return static_cast<uint32_t>(descriptor >> shift & 0x3fff) << 4;
    };
    start_ = field(0);
    leading_ = field(16);
    stride_ = field(32);
    const auto swizzle = descriptor >> 62;
    if (swizzle != 1 && swizzle != 2) emulation::Die("a swizzle that no kernel here asks for");
    row_bytes_ = swizzle == 1 ? 128 : 64;
    if ((descriptor >> 49 & 7) != 0) emulation::Die("an atom that begins in its middle");
  }
  // Row `row` of A, or column `row` of B, where K lies along the rows.
  float AlongK(uint32_t row, uint32_t k) const {
    return At(start_ + row / 8 * stride_ + row % 8 * row_bytes_ + k * kBytes);
  }
  // Column n of B, where N lies along the rows.
  float AlongN(uint32_t n, uint32_t k) const {
    const uint32_t columns = row_bytes_ / kBytes;
    return At(start_ + n / columns * leading_ + k / 8 * stride_ + k % 8 * row_bytes_ +
              n % columns * kBytes);
  }

 private:
  static constexpr uint32_t kBytes = kInputs == WgmmaInputs::kE4m3 ? 1 : 2;

  // Chunks of 16 bytes change places by the address's own bits.
  float At(uint32_t address) const {
    address ^= (address >> 7 & (row_bytes_ / 16 - 1)) << 4;
    uint16_t bits = 0;
    std::memcpy(&bits, emulation::Smem(address, kBytes), kBytes);
    return (*values_)[bits];
  }

  const std::vector<float>* values_ = &WgmmaValues<kInputs>();
  uint32_t start_;
  uint32_t leading_;
  uint32_t stride_;
  uint32_t row_bytes_;
};

// Sums of a product in FP64, rounded once.
template <int kN, WgmmaInputs kInputs = WgmmaInputs::kFp16>
struct Wgmma {
  template <int kTransposeB = 0>
  static void SS(float (&d)[kN / 2], uint64_t a, uint64_t b, int accumulate) {
    const uint32_t row = FirstRow();
    Start<kTransposeB>(d, b, accumulate, [=] {
      const WgmmaOperand<kInputs> tile(a);
      Rows rows;
      for (uint32_t r = 0; r < 2; ++r) {
        for (uint32_t k = 0; k < kK; ++k) rows[r][k] = tile.AlongK(row + 8 * r, k);
      }
      return rows;
    });
  }
  // Register i of a lane has columns of row lane / 4 + 8 (i % 2) from 4 bytes (lane % 4) on, i / 2
  // half a product further (PTX ISA, "Register Fragments for wgmma").
  template <int kTransposeB = kInputs == WgmmaInputs::kE4m3 ? 0 : 1>
  static void RS(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t b, int accumulate) {
    const auto all = emulation::Exchange(std::array<uint32_t, 4>{a[0], a[1], a[2], a[3]});
    const int quad = emulation::current->lane / 4 * 4;
    const std::vector<float>& values = WgmmaValues<kInputs>();
    Rows rows;
    for (uint32_t r = 0; r < 2; ++r) {
      for (uint32_t k = 0; k < kK; ++k) {
        const uint32_t in_half = k % (kK / 2);
        const auto lane = static_cast<size_t>(quad) + in_half / kPerRegister;
        const uint32_t bits = all[lane][r + k / (kK / 2) * 2];
        rows[r][k] = values[bits >> in_half % kPerRegister * kBits & ((1u << kBits) - 1)];
      }
    }
    Start<kTransposeB>(d, b, accumulate, [=] { return rows; });
  }

 private:
  static constexpr uint32_t kPerRegister = kInputs == WgmmaInputs::kE4m3 ? 4 : 2;
  static constexpr uint32_t kBits = 32 / kPerRegister;
  static constexpr uint32_t kK = 8 * kPerRegister;
  using Rows = std::array<std::array<float, kK>, 2>;

  // Of the warpgroup's 64, the first of the thread's two; the other is eight rows on.
  static uint32_t FirstRow() {
    return emulation::current->index.x / 32 % 4 * 16 +
           static_cast<uint32_t>(emulation::current->lane) / 4;
  }

  template <int kTransposeB, typename RowsOfA>
  static void Start(float (&d)[kN / 2], uint64_t b, int accumulate, const RowsOfA& rows_of_a) {
    const auto pair = static_cast<uint32_t>(emulation::current->lane) % 4 * 2;
    emulation::StartProduct(d, kN / 2, [=](float* sums) {
      const Rows rows = rows_of_a();
      const WgmmaOperand<kInputs> tile(b);
      for (uint32_t group = 0; group < kN / 8; ++group) {
        for (uint32_t j = 0; j < 2; ++j) {
          const uint32_t n = group * 8 + pair + j;
          double sum[2] = {};
          for (uint32_t k = 0; k < kK; ++k) {
            const double of_b = kTransposeB ? tile.AlongN(n, k) : tile.AlongK(n, k);
            for (uint32_t r = 0; r < 2; ++r) sum[r] += static_cast<double>(rows[r][k]) * of_b;
          }
          for (uint32_t r = 0; r < 2; ++r) {
            float& to = sums[group * 4 + r * 2 + j];
            to = static_cast<float>((accumulate ? static_cast<double>(to) : 0.0) + sum[r]);
          }
        }
      }
    });
  }
};

}  // namespace warpledger::ptx
