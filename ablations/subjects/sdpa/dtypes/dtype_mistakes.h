// SPDX-License-Identifier: Apache-2.0
// Kernels that handle 8-bit K/V wrongly, each in one way, on the CPU: which mistake gives
// NaN or infinity, from which length on, and whether the format's range has a part in it.
//
// The L4 notes report NaN at 512 keys with 8-bit K/V and blame FP8's range. Their source
// of that version is not at hand, so this shows what could have done it, not what did.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/sdpa/problem/inputs.h"
#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::ablations {

struct DtypeMistake {
  std::string_view name;
  std::string_view what;  // one sentence
  sdpa::InputKind inputs;
  // Whether numbers leave the 8-bit format's range in it.
  bool leaves_fp8_range;
  // O of one query row, head_dim values, from K and V of one head: (seq_kv, head_dim) each,
  // fp16. Rows of a last tile of kMistakeTileKeys that the tensor does not have hold the byte
  // 0xff.
  void (*row)(const sdpa::Problem& problem, const sdpa::Fp16* q, const sdpa::Fp16* k,
              const sdpa::Fp16* v, float* out);
};

inline constexpr int kMistakeTileKeys = 64;

std::span<const DtypeMistake> DtypeMistakes();

// Of the first `rows` query rows of each head, those with an element that is not finite.
int64_t NonFiniteRows(const DtypeMistake& mistake, const sdpa::Problem& problem,
                      const sdpa::Inputs& inputs, int rows);

}  // namespace warpledger::ablations
