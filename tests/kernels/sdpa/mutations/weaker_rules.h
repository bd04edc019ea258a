// SPDX-License-Identifier: Apache-2.0
// Rules by which others say that an output is right, to be held against the suite's own
// (ablations/subjects/sdpa/correctness.h). They see O alone, and fail NaN.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace warpledger::sdpa {

// Passes where |out - ref| <= absolute + relative |ref| + of_largest max|ref| in each element.
struct WeakerRule {
  std::string_view name;
  double absolute;
  double relative;
  double of_largest;
};
inline constexpr WeakerRule kWeakerRules[] = {
    {"absolute_0.06", 0.06, 0, 0},         // the L4 notes
    {"relative_1e-3", 0, 0, 1e-3},         // of the largest output
    {"allclose", 1e-8, 1e-5, 0},           // the defaults of numpy.allclose, torch.allclose
    {"assert_close_fp16", 1e-5, 1e-3, 0},  // torch.testing.assert_close for fp16
};

inline bool Passes(const WeakerRule& rule, absl::Span<const double> reference,
                   const std::vector<float>& out) {
  double largest = 0;
  for (const double value : reference) largest = std::max(largest, std::fabs(value));
  if (out.size() != reference.size()) return false;
  for (size_t i = 0; i < out.size(); ++i) {
    const double limit =
        rule.absolute + rule.relative * std::fabs(reference[i]) + rule.of_largest * largest;
    if (!(std::fabs(out[i] - reference[i]) <= limit)) return false;
  }
  return true;
}

}  // namespace warpledger::sdpa
