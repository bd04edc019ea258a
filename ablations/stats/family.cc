// SPDX-License-Identifier: Apache-2.0
#include "ablations/stats/family.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace warpledger::analysis {

std::vector<HolmLevel> Holm(absl::Span<const double> p_values, double alpha) {
  const size_t count = p_values.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<HolmLevel> levels(count);
  bool stopped = false;
  double level = 0;
  for (size_t place = 0; place < count; ++place) {
    if (!stopped) level = alpha / static_cast<double>(count - place);
    stopped = stopped || p_values[order[place]] > level;
    levels[order[place]] = {.alpha = level, .rejected = !stopped};
  }
  return levels;
}

double FalseCoverageLevel(absl::Span<const double> p_values, double alpha) {
  std::vector<double> sorted(p_values.begin(), p_values.end());
  std::sort(sorted.begin(), sorted.end());
  const double share = alpha / static_cast<double>(sorted.size());
  size_t decided = sorted.size();
  while (decided > 1 && sorted[decided - 1] > static_cast<double>(decided) * share) --decided;
  return static_cast<double>(decided) * share;
}

}  // namespace warpledger::analysis
