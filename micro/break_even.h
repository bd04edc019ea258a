// SPDX-License-Identifier: Apache-2.0
// Where a cost that falls along a curve stops to matter.
//
//   BreakEven({0, 16, 32}, {7.0, 0.6, 0.0}, /*threshold=*/0.01);  // 31.7
//
// Host code, without CUDA.

#ifndef WARPLEDGER_MICRO_BREAK_EVEN_H_
#define WARPLEDGER_MICRO_BREAK_EVEN_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace warpledger::micro {

// The x from which `cost` stays at or below `threshold`, on straight lines between the
// points. InvalidArgument unless x rises and there is a cost for each; OutOfRange when
// the last cost is still above the threshold, or the first isn't.
inline absl::StatusOr<double> BreakEven(const std::vector<double>& x,
                                        const std::vector<double>& cost, double threshold) {
  if (x.size() != cost.size() || x.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(x.size(), " places and ", cost.size(), " costs are no curve"));
  }
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i] <= x[i - 1]) return absl::InvalidArgumentError("the places of the curve don't rise");
  }
  if (cost.back() > threshold) {
    return absl::OutOfRangeError(absl::StrCat("the cost is still ", cost.back(), " at ", x.back()));
  }
  size_t last_above = x.size();
  for (size_t i = 0; i < x.size(); ++i) {
    if (cost[i] > threshold) last_above = i;
  }
  if (last_above == x.size()) {
    return absl::OutOfRangeError(absl::StrCat("the cost never lies above ", threshold));
  }
  const double share = (cost[last_above] - threshold) / (cost[last_above] - cost[last_above + 1]);
  return x[last_above] + share * (x[last_above + 1] - x[last_above]);
}

}  // namespace warpledger::micro

#endif  // WARPLEDGER_MICRO_BREAK_EVEN_H_
