// SPDX-License-Identifier: Apache-2.0
// The shape of one SDPA forward call.
//
// Layouts: Q and O are (batch, heads_q, seq_q, head_dim), K and V are
// (batch, heads_kv, seq_kv, head_dim), contiguous, of the problem's dtype; LSE is
// (batch, heads_q, seq_q), fp32, in natural-log units. Query head h reads K/V
// head h / (heads_q / heads_kv). The causal mask is aligned to the bottom
// right, as in FlashAttention since 2.1: query i sees keys j with
// j <= i + seq_kv - seq_q. A row that sees no key gives O = 0 and LSE = -inf.
//
// A problem may begin in front of SDPA (embed_dim > 0): its inputs are then x
// (batch, seq, embed_dim), gamma and beta (embed_dim) and W (ProjectionRows, embed_dim),
// all fp16, and Q, K and V are layernorm(x) W^T with epsilon kLayerNormEpsilon. W's rows
// are the columns of Q, then of K, then of V, head by head. seq_q = seq_kv there.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_H_

#include <cstdint>

#include "kernels/sdpa/dtype/dtype.h"

namespace warpledger::sdpa {

struct Problem {
  int batch = 1;
  int heads_q = 1;
  int heads_kv = 1;
  int seq_q = 1;
  int seq_kv = 1;
  int head_dim = 64;
  bool causal = false;
  Dtype dtype = Dtype::kFp16;
  int embed_dim = 0;  // 0: Q, K and V are given

  friend constexpr bool operator==(const Problem&, const Problem&) = default;
};

// Whether every design for problems that begin so is compiled for it; others only where the
// design says so.
constexpr bool EveryDesignRuns(const Problem& p) {
  return p.head_dim == Problem{}.head_dim && p.dtype == Problem{}.dtype;
}

// Head dimensions that some kernel is made for (Design::head_dims says which).
inline constexpr int kHeadDims[] = {64, 128, 256};

inline constexpr double kLayerNormEpsilon = 1e-5;
constexpr int64_t QueryRows(const Problem& p) { return int64_t{p.batch} * p.heads_q * p.seq_q; }
constexpr int64_t QueryElements(const Problem& p) { return QueryRows(p) * p.head_dim; }
constexpr int64_t KeyElements(const Problem& p) {
  return int64_t{p.batch} * p.heads_kv * p.seq_kv * p.head_dim;
}

// Of a problem that begins with x: its elements, and the rows of W, which are also the
// columns of its product.
constexpr int64_t EmbeddedRows(const Problem& p) { return int64_t{p.batch} * p.seq_q; }
constexpr int64_t EmbeddedElements(const Problem& p) { return EmbeddedRows(p) * p.embed_dim; }
constexpr int64_t ProjectionRows(const Problem& p) {
  return (int64_t{p.heads_q} + 2 * int64_t{p.heads_kv}) * p.head_dim;
}

// (query, key) pairs that the mask lets through, over one head of one batch.
constexpr int64_t VisiblePairs(const Problem& p) {
  if (!p.causal) return int64_t{p.seq_q} * p.seq_kv;
  int64_t pairs = 0;
  for (int64_t i = 0; i < p.seq_q; ++i) {
    const int64_t visible = i + p.seq_kv - p.seq_q + 1;
    pairs += visible < 0 ? 0 : visible;
  }
  return pairs;
}

// Multiply-adds of the projection, counted as two operations each.
constexpr double ProjectionFlops(const Problem& p) {
  return 2.0 * static_cast<double>(EmbeddedElements(p)) * static_cast<double>(ProjectionRows(p));
}

// Multiply-adds of Q K^T, P V and the projection, counted as two operations each.
constexpr double Flops(const Problem& p) {
  return 4.0 * p.batch * p.heads_q * static_cast<double>(VisiblePairs(p)) * p.head_dim +
         ProjectionFlops(p);
}

// Each input read once, each output written once (two bytes an element; LSE not counted).
constexpr double MinBytes(const Problem& p) {
  const double inputs =
      p.embed_dim == 0
          ? static_cast<double>(QueryElements(p)) + 2.0 * static_cast<double>(KeyElements(p))
          : static_cast<double>(EmbeddedElements(p)) +
                static_cast<double>(ProjectionRows(p) + 2) * p.embed_dim;
  return 2.0 * (static_cast<double>(QueryElements(p)) + inputs);
}

// One exponential per visible pair.
constexpr double Exponentials(const Problem& p) {
  return static_cast<double>(p.batch) * p.heads_q * static_cast<double>(VisiblePairs(p));
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_PROBLEM_H_
