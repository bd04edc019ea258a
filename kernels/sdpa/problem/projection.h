// SPDX-License-Identifier: Apache-2.0
// Q, K and V from x on the CPU, for problems that begin in front of SDPA.
//
// Contract: shapes and layouts as problem.h says, embed_dim > 0. The work is spread
// over all cores; the results do not depend on their number.
//
//   const Projected<double> exact = ProjectExact(problem, inputs);

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_PROJECTION_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_PROJECTION_H_

#include <vector>

#include "kernels/sdpa/dtype/fp16.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::sdpa {

template <typename T>
struct Projected {
  std::vector<T> q;  // (batch, heads_q, seq_q, head_dim)
  std::vector<T> k;  // (batch, heads_kv, seq_kv, head_dim)
  std::vector<T> v;  // (batch, heads_kv, seq_kv, head_dim)
};

// FP64 throughout.
Projected<double> ProjectExact(const Problem& problem, const Inputs& inputs);

// With fp16(layernorm(x)) and fp16 results; sums in fp32.
Projected<Fp16> ProjectNaive(const Problem& problem, const Inputs& inputs);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_PROJECTION_H_
