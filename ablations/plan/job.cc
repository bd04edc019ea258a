// SPDX-License-Identifier: Apache-2.0
#include "ablations/plan/job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace warpledger::ablations {

absl::StatusOr<int> RotationSets(double bytes, std::string_view cache, int64_t l2_bytes) {
  if (cache != kCacheCold) return kInputSets;
  const double wanted = kColdL2Multiple * static_cast<double>(l2_bytes) / bytes;
  if (wanted > kMaxRotation) {
    return absl::InvalidArgumentError(
        absl::StrCat("one launch touches ", bytes, " bytes, so a cold L2 of ", l2_bytes,
                     " bytes would take ", std::ceil(wanted), " input sets, more than ",
                     kMaxRotation, "; measure this shape with --cache=warm"));
  }
  const int sets = static_cast<int>(std::ceil(wanted));
  return std::max(kInputSets, (sets + kInputSets - 1) / kInputSets * kInputSets);
}

absl::Status CheckRotation(const ShapeInfo& problem, std::string_view cache, int64_t l2_bytes) {
  const absl::StatusOr<int> rotation = RotationSets(problem.min_bytes(), cache, l2_bytes);
  if (rotation.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(problem.name, ": ", std::string(rotation.status().message())));
}

}  // namespace warpledger::ablations
