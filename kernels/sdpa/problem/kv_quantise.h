// SPDX-License-Identifier: Apache-2.0
// K and V in 8 bits, as a KV cache holds them: codes, and scales that several codes share.
//
// A tensor is (batch * heads_kv, seq_kv, head_dim). A value is code's number times its
// scale; the scale maps the largest magnitude that shares it onto the format's largest
// number. Where all of them are zero it is the head's largest, or 1: no code comes from 0 / 0.
//
//   const QuantisedTensor k8 = Quantise(problem, k, {KvFormat::kE4m3, ScaleScope::kHead});
//   const double k_at = Dequantise(k8, at);

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_QUANTISE_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_QUANTISE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/problem/kv_scheme.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

struct QuantisedTensor {
  KvFormat format = KvFormat::kE4m3;
  int seq_kv = 1;
  int head_dim = 64;
  int keys_per_scale = 1;
  std::vector<uint8_t> codes;  // (batch * heads_kv, seq_kv, head_dim)
  std::vector<float> scales;   // (batch * heads_kv, ceil(seq_kv / keys_per_scale))
};

inline constexpr int kUint8Zero = 128;  // the code of 0

// The largest number of a format: 127, 448 or 57344.
float LargestNumber(KvFormat format);
// The number of a code; NaN or infinity for FP8's special codes, which Quantise never gives.
float CodeNumber(KvFormat format, uint8_t code);

// `values`: (batch * heads_kv, seq_kv, head_dim) of the problem's dtype, all finite.
// With ScaleScope::kTensor every head repeats the one scale.
QuantisedTensor Quantise(const Problem& problem, std::span<const Bits16> values,
                         const KvScheme& scheme);

// Q, (batch * heads_q, seq_q, head_dim), the same way, with a scale per head. `seq_kv` of the
// result is seq_q.
QuantisedTensor QuantiseQueries(const Problem& problem, std::span<const Bits16> values,
                                KvFormat format);

// A tensor's scales as kernels take them (forward_params.h): (heads, stride), the head's
// largest scale first, then, with ScaleScope::kBlock, each block's in parts of it.
std::vector<float> LaunchScales(const QuantisedTensor& tensor, ScaleScope scope);
int LaunchScaleStride(const QuantisedTensor& tensor, ScaleScope scope);

// Of O as codes: a power of two, so that code times scale is exact in 16 bits. O is a mean of V's
// rows, so that no code exceeds the format's largest number.
float OutputScale(const QuantisedTensor& v);

// Element `at` of the tensor, exactly.
inline double Dequantise(const QuantisedTensor& tensor, int64_t at) {
  const int64_t row = at / tensor.head_dim;
  const int scales_per_head = (tensor.seq_kv + tensor.keys_per_scale - 1) / tensor.keys_per_scale;
  const int64_t scale =
      row / tensor.seq_kv * scales_per_head + row % tensor.seq_kv / tensor.keys_per_scale;
  return double{CodeNumber(tensor.format, tensor.codes[at])} * tensor.scales[scale];
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_KV_QUANTISE_H_
