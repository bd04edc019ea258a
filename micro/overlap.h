// SPDX-License-Identifier: Apache-2.0
// What the overlap matrix computes from its three times: how much of the shorter
// of two kinds of work is hidden behind the other.
//
//   OverlapTimes times = {.op = 480, .mma = 500, .both = 560};
//   HiddenFraction(times);  // (480 + 500 - 560) / 480 = 0.875
//
// Host code, without CUDA.

#ifndef WARPLEDGER_MICRO_OVERLAP_H_
#define WARPLEDGER_MICRO_OVERLAP_H_

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace warpledger::micro {

// Cycles of the same amount of work: each kind alone, and both at once.
struct OverlapTimes {
  double op = 0;
  double mma = 0;
  double both = 0;
};

// 1: the shorter costs nothing beside the longer. 0: both take as long as one after
// the other. Below 0: they take longer than that. InvalidArgument for times that
// aren't positive, and for a `both` a fifth below the longer: the kernel then can't
// have held both kinds of work.
inline absl::StatusOr<double> HiddenFraction(const OverlapTimes& times) {
  const double longer = std::max(times.op, times.mma);
  if (times.op <= 0 || times.mma <= 0 || times.both < 0.8 * longer) {
    return absl::InvalidArgumentError(absl::StrCat("op ", times.op, ", mma ", times.mma,
                                                   " and both ", times.both,
                                                   " cycles can't be times of the same work"));
  }
  return (times.op + times.mma - times.both) / std::min(times.op, times.mma);
}

// Operations per turn of a warp that take as long as its share of the partner's
// time: `share_cycles` of one scheduler, where an operation takes `op_cycles`.
constexpr int BalancedOps(int share_cycles, int op_cycles) {
  return std::max(1, share_cycles / op_cycles);
}

}  // namespace warpledger::micro

#endif  // WARPLEDGER_MICRO_OVERLAP_H_
