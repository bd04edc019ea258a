// The shape of one SDPA forward call, and the named shapes of the suite.
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

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_H_

#include <cstdint>
#include <string_view>

#include "kernels/sdpa/dtype.h"

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

struct NamedShape {
  std::string_view name;
  Problem problem;
  bool ladder = false;  // timed by the ladder design unless --shapes says otherwise
  std::string_view why;
};

inline constexpr NamedShape kShapes[] = {
    {"small", {1, 1, 1, 32, 32, 64, false}, true, "the L4 notes' quick check"},
    {"tiny_multi", {2, 2, 2, 64, 64, 64, false}, false, "the L4 notes' multi-batch check"},
    {"medium", {1, 4, 4, 128, 128, 64, false}, true, "the L4 notes"},
    {"mission_a",
     {2, 8, 8, 256, 256, 64, false},
     true,
     "the L4 notes' mission shape in their later tables"},
    {"mission_b",
     {1, 8, 8, 512, 512, 64, false},
     true,
     "the L4 notes' mission shape in their harness"},
    {"long", {1, 8, 8, 2048, 2048, 64, false}, true, "the L4 notes"},
    {"mission_b_causal", {1, 8, 8, 512, 512, 64, true}, false, "mission_b under the causal mask"},
    {"ragged_1x1", {1, 2, 2, 1, 1, 64, false}, false, "a single key"},
    {"ragged_33x65", {2, 3, 3, 33, 65, 64, false}, false, "one past a tile on both axes"},
    {"ragged_113x203", {1, 2, 2, 113, 203, 64, false}, false, "FlashAttention's ragged shape"},
    {"ragged_799x3", {1, 2, 2, 799, 3, 64, false}, false, "FlashAttention's ragged shape"},
    {"ragged_33x65_causal", {2, 3, 3, 33, 65, 64, true}, false, "ragged, keys longer"},
    {"ragged_113x203_causal", {1, 2, 2, 113, 203, 64, true}, false, "ragged, keys longer"},
    {"ragged_799x3_causal",
     {1, 2, 2, 799, 3, 64, true},
     false,
     "796 of 799 rows see no key at all"},
    {"gqa_4to1", {2, 8, 2, 65, 97, 64, true}, false, "four query heads share a K/V head"},
    {"mqa_8to1", {2, 8, 1, 65, 97, 64, true}, false, "all query heads share a K/V head"},
    {"ragged_33x65_d128", {2, 3, 3, 33, 65, 128, false}, false, "one past a tile on both axes"},
    {"ragged_113x203_d128_causal",
     {1, 2, 2, 113, 203, 128, true},
     false,
     "FlashAttention's ragged shape"},
    {"ragged_799x3_d128_causal",
     {1, 2, 2, 799, 3, 128, true},
     false,
     "796 of 799 rows see no key at all"},
    {"gqa_4to1_d128", {2, 8, 2, 65, 97, 128, true}, false, "four query heads share a K/V head"},
    {"ragged_33x65_d256", {2, 3, 3, 33, 65, 256, false}, false, "one past a tile on both axes"},
    {"ragged_113x203_d256_causal",
     {1, 2, 2, 113, 203, 256, true},
     false,
     "FlashAttention's ragged shape"},
    {"gqa_4to1_d256", {2, 8, 2, 65, 97, 256, true}, false, "four query heads share a K/V head"},
    {"ragged_33x65_bf16",
     {2, 3, 3, 33, 65, 64, false, Dtype::kBf16},
     false,
     "one past a tile on both axes"},
    {"ragged_113x203_bf16_causal",
     {1, 2, 2, 113, 203, 64, true, Dtype::kBf16},
     false,
     "FlashAttention's ragged shape"},
    {"gqa_4to1_d128_bf16",
     {2, 8, 2, 65, 97, 128, true, Dtype::kBf16},
     false,
     "four query heads share a K/V head"},
    {"mission_b_bf16",
     {1, 8, 8, 512, 512, 64, false, Dtype::kBf16},
     false,
     "mission_b in bfloat16"},
    {"decode_b1", {1, 32, 8, 1, 8192, 128, false}, false, "decoding with grouped heads"},
    {"decode_b16", {16, 32, 8, 1, 8192, 128, false}, false, "decoding with grouped heads"},
    {"decode_mqa_b1",
     {1, 32, 1, 1, 8192, 128, false},
     false,
     "decoding where all query heads share a K/V head"},
    {"gqa_prefill", {1, 32, 8, 2048, 2048, 128, true}, false, "a prompt with grouped heads"},
    {"mqa_prefill",
     {1, 32, 1, 2048, 2048, 128, true},
     false,
     "a prompt whose query heads share a K/V head"},
    {"fusion_a",
     {2, 8, 8, 256, 256, 64, false, Dtype::kFp16, 512},
     false,
     "mission_a behind its projection"},
    {"fusion_b",
     {1, 8, 8, 512, 512, 64, false, Dtype::kFp16, 512},
     false,
     "mission_b behind its projection"},
    {"ragged_fusion",
     {2, 3, 3, 129, 129, 64, true, Dtype::kFp16, 192},
     false,
     "behind a projection, one past a tile on both axes"},
#define WARPLEDGER_FA3(d, s, suffix, dtype)                                                     \
  {"fa3_d" #d "_s" #s "_full" suffix,                                                           \
   {16384 / s, 2048 / d, 2048 / d, s, s, d, false, dtype},                                      \
   false,                                                                                       \
   "the grid of FlashAttention-3's paper"},                                                     \
  {                                                                                             \
    "fa3_d" #d "_s" #s "_causal" suffix, {16384 / s, 2048 / d, 2048 / d, s, s, d, true, dtype}, \
        false, "the grid of FlashAttention-3's paper"                                           \
  }
#define WARPLEDGER_FA3_HEAD_DIM(d, ...)                                           \
  WARPLEDGER_FA3(d, 512, __VA_ARGS__), WARPLEDGER_FA3(d, 1024, __VA_ARGS__),      \
      WARPLEDGER_FA3(d, 2048, __VA_ARGS__), WARPLEDGER_FA3(d, 4096, __VA_ARGS__), \
      WARPLEDGER_FA3(d, 8192, __VA_ARGS__), WARPLEDGER_FA3(d, 16384, __VA_ARGS__)
    WARPLEDGER_FA3_HEAD_DIM(64, "", Dtype::kFp16),
    WARPLEDGER_FA3_HEAD_DIM(128, "", Dtype::kFp16),
    WARPLEDGER_FA3_HEAD_DIM(256, "", Dtype::kFp16),
    WARPLEDGER_FA3_HEAD_DIM(128, "_bf16", Dtype::kBf16),
#undef WARPLEDGER_FA3_HEAD_DIM
#undef WARPLEDGER_FA3
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_H_
