// SPDX-License-Identifier: Apache-2.0
// Random inputs for checks and timing, the same on every machine for a seed. A seed gives
// every dtype the same values before they are rounded to it.

#ifndef WARPLEDGER_KERNELS_SDPA_PROBLEM_INPUTS_H_
#define WARPLEDGER_KERNELS_SDPA_PROBLEM_INPUTS_H_

#include <cstdint>
#include <string_view>

#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::sdpa {

enum class InputKind {
  kNormal,       // N(0, 1)
  kOutliers,     // N(0, 1) with 0.1% of N(0, 100), variance 100
  kLargeLogits,  // Q and K of N(0, 64): scores up to several hundred
  kConstant,     // all rows of K equal, all rows of V equal: O is V exactly
};

struct NamedInputKind {
  InputKind kind;
  std::string_view name;
};

inline constexpr NamedInputKind kInputKinds[] = {
    {InputKind::kNormal, "normal"},
    {InputKind::kOutliers, "outliers"},
    {InputKind::kLargeLogits, "large_logits"},
    {InputKind::kConstant, "constant"},
};

// Where the problem begins with x, outliers are x's, the large logits W's (its rows of Q
// and K), and constant rows x's.
Inputs MakeInputs(const Problem& problem, InputKind kind, uint64_t seed);

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_PROBLEM_INPUTS_H_
