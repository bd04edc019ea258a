// SDPA on the CPU: the truth that kernels are checked against, and the naive
// same-precision computation that says how much error is fair.
//
// Contract: layouts and masking as problem.h says. The work is spread over all
// cores; the results do not depend on their number.

#ifndef WARPLEDGER_KERNELS_SDPA_REFERENCE_H_
#define WARPLEDGER_KERNELS_SDPA_REFERENCE_H_

#include <vector>

#include "kernels/sdpa/fp16.h"
#include "kernels/sdpa/problem.h"

namespace warpledger::sdpa {

// The inputs of one call, as the kernels get them.
struct Inputs {
  std::vector<Fp16> q;
  std::vector<Fp16> k;
  std::vector<Fp16> v;
};

struct Reference {
  std::vector<double> out;  // (batch, heads_q, seq_q, head_dim), FP64 throughout
  std::vector<double> lse;  // (batch, heads_q, seq_q)
  // The same formula with every intermediate tensor in fp16: S = fp16(Q K^T),
  // S = fp16(S * scale), P = fp16(softmax(S)), O = fp16(P V); sums in fp32.
  std::vector<float> naive_out;
};

// Softmax scale: 1 / sqrt(head_dim).
Reference ComputeReference(const Problem& problem, const Inputs& inputs);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REFERENCE_H_
