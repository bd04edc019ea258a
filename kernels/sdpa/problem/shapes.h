// SPDX-License-Identifier: Apache-2.0
// The named shapes of the suite. Kernels don't include it: a further shape compiles none again.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_SHAPES_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_SHAPES_H_

#include <string_view>

#include "kernels/sdpa/problem/problem.h"

namespace warpledger::sdpa {

struct NamedShape {
  std::string_view name;
  Problem problem;
  bool ladder = false;  // timed by the ladder design unless --shapes says otherwise
  std::string_view why;
  bool fa3 = false;  // of the grid of FlashAttention-3's paper, which `--shapes=fa3` names
  // What pages call it, where records have an older name; commands take both. It is
  // ProblemName()'s.
  std::string_view shown = "";
};

inline constexpr NamedShape kShapes[] = {
    {"small", {1, 1, 1, 32, 32, 64, false}, true, "the L4 notes' quick check"},
    {"tiny", {1, 2, 2, 64, 64, 64, false}, true, "the L4 notes' check of two heads"},
    {"tiny_multi", {2, 2, 2, 64, 64, 64, false}, false, "the L4 notes' multi-batch check"},
    {"medium", {1, 4, 4, 128, 128, 64, false}, true, "the L4 notes"},
    {"mission_a",
     {2, 8, 8, 256, 256, 64, false},
     true,
     "the L4 notes' mission shape in their later tables",
     false,
     "b2_h8_s256_d64"},
    {"mission_b",
     {1, 8, 8, 512, 512, 64, false},
     true,
     "the L4 notes' mission shape in their harness",
     false,
     "b1_h8_s512_d64"},
    {"long", {1, 8, 8, 2048, 2048, 64, false}, true, "the L4 notes"},
    {"mission_b_causal",
     {1, 8, 8, 512, 512, 64, true},
     false,
     "b1_h8_s512_d64 under the causal mask",
     false,
     "b1_h8_s512_d64_causal"},
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
    {"ragged_33x65_d128_bf16",
     {2, 3, 3, 33, 65, 128, false, Dtype::kBf16},
     false,
     "one past a tile on both axes"},
    {"mission_b_bf16",
     {1, 8, 8, 512, 512, 64, false, Dtype::kBf16},
     false,
     "b1_h8_s512_d64 in bfloat16",
     false,
     "b1_h8_s512_d64_bf16"},
    {"gqa_3to1", {2, 6, 2, 67, 300, 64, false}, false, "groups that divide no tile of rows"},
    {"gqa_3to1_d128_causal",
     {2, 6, 2, 67, 300, 128, true},
     false,
     "groups that divide no tile of rows, keys that several CTAs share"},
    {"unseen_400x200_d128_causal",
     {1, 2, 2, 400, 200, 128, true},
     false,
     "half of the rows see no key, and several CTAs share the others' keys"},
    {"unseen_400x200_d256_causal",
     {1, 2, 2, 400, 200, 256, true},
     false,
     "half of the rows see no key"},
    {"unseen_400x200_bf16_causal",
     {1, 2, 2, 400, 200, 64, true, Dtype::kBf16},
     false,
     "half of the rows see no key"},
    {"unseen_400x200_d128_bf16_causal",
     {1, 2, 2, 400, 200, 128, true, Dtype::kBf16},
     false,
     "half of the rows see no key"},
    {"many_heads", {1, 400, 400, 1, 200, 64, false}, false, "several tiles for each CTA"},
    {"many_heads_causal", {1, 400, 400, 2, 200, 64, true}, false, "several tiles for each CTA"},
    {"many_heads_d128", {1, 400, 400, 1, 200, 128, false}, false, "several tiles for each CTA"},
    {"many_heads_d128_causal",
     {1, 400, 400, 2, 200, 128, true},
     false,
     "several tiles for each CTA"},
    {"many_heads_d256", {1, 400, 400, 1, 130, 256, false}, false, "several tiles for each CTA"},
    {"many_heads_d256_causal",
     {1, 400, 400, 2, 130, 256, true},
     false,
     "several tiles for each CTA"},
    {"many_heads_bf16",
     {1, 400, 400, 1, 200, 64, false, Dtype::kBf16},
     false,
     "several tiles for each CTA"},
    {"many_heads_bf16_causal",
     {1, 400, 400, 2, 200, 64, true, Dtype::kBf16},
     false,
     "several tiles for each CTA"},
    {"many_heads_d128_bf16",
     {1, 400, 400, 1, 200, 128, false, Dtype::kBf16},
     false,
     "several tiles for each CTA"},
    {"many_heads_d128_bf16_causal",
     {1, 400, 400, 2, 200, 128, true, Dtype::kBf16},
     false,
     "several tiles for each CTA"},
    {"few_rows",
     {1, 4, 1, 7, 8192, 64, false},
     false,
     "so few rows that more CTAs share their keys than the join takes at a time"},
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
     "b2_h8_s256_d64 behind its projection"},
    {"fusion_b",
     {1, 8, 8, 512, 512, 64, false, Dtype::kFp16, 512},
     false,
     "b1_h8_s512_d64 behind its projection"},
    {"ragged_fusion",
     {2, 3, 3, 129, 129, 64, true, Dtype::kFp16, 192},
     false,
     "behind a projection, one past a tile on both axes"},
    {"ragged_fusion_full",
     {2, 3, 3, 129, 129, 64, false, Dtype::kFp16, 192},
     false,
     "ragged_fusion without the mask"},
#define WARPLEDGER_FA3(d, s, suffix, dtype)                                                     \
  {"fa3_d" #d "_s" #s "_full" suffix,                                                           \
   {16384 / s, 2048 / d, 2048 / d, s, s, d, false, dtype},                                      \
   false,                                                                                       \
   "the grid of FlashAttention-3's paper",                                                      \
   true},                                                                                       \
  {                                                                                             \
    "fa3_d" #d "_s" #s "_causal" suffix, {16384 / s, 2048 / d, 2048 / d, s, s, d, true, dtype}, \
        false, "the grid of FlashAttention-3's paper", true                                     \
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

// What pages call the problem that records call `name`.
constexpr std::string_view ShownName(std::string_view name) {
  for (const NamedShape& shape : kShapes) {
    if (!shape.shown.empty() && shape.name == name) return shape.shown;
  }
  return name;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_SHAPES_H_
