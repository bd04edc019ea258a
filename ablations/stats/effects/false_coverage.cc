// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/effects/false_coverage.h"

#include <algorithm>
#include <vector>

namespace warpledger::analysis {

double FalseCoverageLevel(absl::Span<const double> p_values, double alpha) {
  std::vector<double> sorted(p_values.begin(), p_values.end());
  std::sort(sorted.begin(), sorted.end());
  const double share = alpha / static_cast<double>(sorted.size());
  size_t decided = sorted.size();
  while (decided > 1 && sorted[decided - 1] > static_cast<double>(decided) * share) --decided;
  return static_cast<double>(decided) * share;
}

}  // namespace warpledger::analysis
