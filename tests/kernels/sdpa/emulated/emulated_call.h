// SPDX-License-Identifier: Apache-2.0
// What tests that run kernels on the CPU (tests/emulation) have in common.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/shared/forward_params.h"
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

// A call on these, with the problem's own scale of the softmax.
inline LaunchParams CallOf(const Problem& problem, Tensor& q, Tensor& k, Tensor& v, Tensor& o,
                           std::vector<float>& lse) {
  LaunchParams params;
  params.q = q.data();
  params.k = k.data();
  params.v = v.data();
  params.o = o.data();
  params.lse = lse.data();
  params.batch = problem.batch;
  params.heads_q = problem.heads_q;
  params.heads_kv = problem.heads_kv;
  params.seq_q = problem.seq_q;
  params.seq_kv = problem.seq_kv;
  params.causal = problem.causal ? 1 : 0;
  params.softmax_scale = 1.0f / std::sqrt(static_cast<float>(problem.head_dim));
  return params;
}

struct Order {
  const char* name;
  emulation::CopiesLand copies;
  bool reversed;
};
inline constexpr Order kOrders[] = {
    {"copies land late", emulation::CopiesLand::kLate, false},
    {"copies land early, threads reversed", emulation::CopiesLand::kEarly, true}};

}  // namespace warpledger::sdpa
