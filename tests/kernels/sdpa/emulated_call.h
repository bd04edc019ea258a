// SPDX-License-Identifier: Apache-2.0
// What tests that run kernels on the CPU (tests/emulation) have in common.

#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/sdpa/dtype/fp16.h"
#include "tests/emulation/cuda_on_cpu.h"

namespace warpledger::sdpa {

// A tensor on 16-byte boundaries between bands of NaN.
class Tensor {
 public:
  explicit Tensor(size_t size) : size_(size), memory_(size + 2 * kBand, 0xffff) {}
  explicit Tensor(const std::vector<Fp16>& values) : Tensor(values.size()) {
    if (size_ > 0) std::memcpy(data(), values.data(), size_ * sizeof(Fp16));
  }
  Fp16* data() { return memory_.data() + kBand; }
  std::vector<Fp16> values() const { return {memory_.begin() + kBand, memory_.end() - kBand}; }
  bool IntactAround() const {
    for (size_t i = 0; i < kBand; ++i) {
      if (memory_[i] != 0xffff || memory_[memory_.size() - 1 - i] != 0xffff) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kBand = 4096;
  size_t size_;
  // new gives 16-byte alignment, and so many elements before the data keep it.
  std::vector<Fp16> memory_;
};

struct Order {
  const char* name;
  emulation::CopiesLand copies;
  bool reversed;
};
inline constexpr Order kOrders[] = {
    {"copies land late", emulation::CopiesLand::kLate, false},
    {"copies land early, threads reversed", emulation::CopiesLand::kEarly, true}};

}  // namespace warpledger::sdpa
