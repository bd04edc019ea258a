// SPDX-License-Identifier: Apache-2.0
// When a kernel's output counts as right.
//
// The rule (after FlashAttention's own tests): against an FP64 reference from
// the same 16-bit inputs,
//   max|out - ref|  <= 2 * max|naive - ref| + atol
//   mean|out - ref| <= 1.5 * mean|naive - ref|
// where `naive` is the same formula with every intermediate in the problem's dtype and
// atol is half a step of O's own format at max|ref|, the rounding that no output escapes. Where
// it is produced, the log-sum-exp agrees to 2^-18 of its largest magnitude (at least
// of 1), twice that at head_dim 128 and so on, since a score sums so many products, and is -inf
// exactly where no key is seen. NaN or infinity fails. Where Q and K are intermediate tensors,
// twice the largest error that their rounding to fp16 makes in the log-sum-exp comes on
// top; where they are 8-bit, that of rounding S. Unlike
// a fixed tolerance, the limits shrink with the size of the outputs. Where the reference holds a
// sample of the rows, the others must be finite.

#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "kernels/sdpa/dtype/dtype.h"
#include "kernels/sdpa/problem/reference.h"

namespace warpledger::ablations {

// Operations of a reference; of larger problems a sample of the rows is checked.
inline constexpr double kMaxReferenceFlops = 1e10;

struct Accuracy {
  bool correct = false;
  double max_err = 0;
  double max_err_limit = 0;
  double mean_err = 0;
  double mean_err_limit = 0;
  double lse_err = 0;  // NaN where no LSE was given
  double lse_limit = 0;
  int64_t rows = 0;    // of the reference
  std::string reason;  // why not correct; empty when it is
};

// `out` is of the reference's dtype. `lse` may be empty: then it is not judged. Sizes must match
// the reference. `lse_allowance` is sdpa::LseAllowance() of the kernel's configuration.
Accuracy JudgeAccuracy(const sdpa::Reference& reference, absl::Span<const sdpa::Bits16> out,
                       absl::Span<const float> lse, double lse_allowance = 0);

}  // namespace warpledger::ablations
