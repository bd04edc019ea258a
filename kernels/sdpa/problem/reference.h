// SPDX-License-Identifier: Apache-2.0
// SDPA on the CPU: the truth that kernels are checked against, and the naive
// same-precision computation that says how much error is fair.
//
// Contract: layouts and masking as problem.h says. The work is spread over all
// cores; the results do not depend on their number.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_REFERENCE_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_REFERENCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/problem/kv_quantise.h"
#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

// K and V in 8 bits, and perhaps Q: then products are of the format, E4M3, on both sides, and
// P is rounded to it too.
struct QuantisedKv {
  QuantisedTensor k;
  QuantisedTensor v;
  std::optional<QuantisedTensor> q = std::nullopt;
  float out_scale = 0;  // O is E4M3 codes times it; 0: of the problem's dtype
};

// The inputs of one call, as the kernels get them, elements of the problem's dtype: Q, K and
// V, or what they come from (embed_dim > 0).
struct Inputs {
  std::vector<Bits16> q;
  std::vector<Bits16> k;
  std::vector<Bits16> v;
  std::optional<QuantisedKv> quantised = std::nullopt;  // where it is set, K and V are these
  std::vector<Fp16> x = {};
  std::vector<Fp16> gamma = {};
  std::vector<Fp16> beta = {};
  std::vector<Fp16> w = {};
};

// The same inputs with K and V in 8 bits, and with what else the storage says.
Inputs WithQuantisedKv(const Problem& problem, Inputs inputs, const KvStorage& storage);

struct Reference {
  Dtype dtype = Dtype::kFp16;  // of the problem
  float out_scale = 0;         // O is E4M3 codes times it; 0: of the dtype
  // Query rows over batch and heads, ascending, that it holds; empty: all of them.
  std::vector<int64_t> rows;
  int64_t total_rows = 0;   // of the problem
  std::vector<double> out;  // (rows, head_dim), FP64 throughout
  std::vector<double> lse;  // (rows)
  // The same formula with every intermediate tensor rounded to the dtype:
  // S = round(Q K^T), S = round(S * scale), P = round(softmax(S)), O = round(P V); sums in
  // fp32. Quantised K and V enter it rounded to the dtype too. Before them fp16(layernorm(x))
  // and fp16 Q, K and V where the problem begins with x. Where Q is quantised,
  // P = round_e4m3(2^8 exp(S - max)) and O = round(P V / sum(exp(S - max)) / 2^8): the 2^8 keeps
  // small probabilities from rounding to 0, as kernels have it. With out_scale O is rounded to a
  // code.
  std::vector<float> naive_out;
  // (rows), the exact log-sum-exp of the fp16 Q and K, where those are intermediate
  // tensors; where Q is quantised, of S rounded to the dtype and raised by 2^-13 of the sum of
  // its products' magnitudes, at head_dim 256 by twice that, for tensor cores keep some 14 bits
  // of a sum of 8-bit products (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). Empty elsewhere.
  std::vector<double> rounded_lse;
};

// Softmax scale: 1 / sqrt(head_dim). `rows` as above.
Reference ComputeReference(const Problem& problem, const Inputs& inputs,
                           std::vector<int64_t> rows = {});

// Rows for a reference of about `max_flops`: none, which means all, where the problem
// has no more; else one at random of each run of consecutive rows of a head, and each
// head's first and last.
std::vector<int64_t> SampleRows(const Problem& problem, double max_flops, uint64_t seed);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_REFERENCE_H_
